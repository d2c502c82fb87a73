"""What must hold of any trace.

Job: named checks with a severity, each a sentence that is true of every right capture.
In: a `Trace`, of devprof or of anybody.
Out: findings: which rule does not hold, how often, at which events, and what was expected.
Never: changes a trace, or knows a vendor's names.
"""

from devprof.rules.check import RULES, check
from devprof.rules.finding import Finding, Rule, Severity, Violation

__all__ = ["RULES", "Finding", "Rule", "Severity", "Violation", "check"]
