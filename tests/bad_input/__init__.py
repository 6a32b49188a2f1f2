"""Bad input, systematically: everything public is called with arguments that are wrong.

The rule: a call ends in a correct result or in a `RetraxError` of one sentence and of the right
class; never in another exception, never in numbers that are not finite, never not at all.
"""
