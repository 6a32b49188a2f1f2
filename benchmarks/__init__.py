"""Speed and accuracy, measured against hand-written C and against other libraries."""
