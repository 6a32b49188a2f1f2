"""Speed and accuracy beyond `retrax bench`: other libraries, figures, graphics cards, the page."""
