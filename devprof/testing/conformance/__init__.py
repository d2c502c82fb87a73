"""Conformance kit: does a profiler backend keep what the contract promises?

Job: named, numbered checks of any plugin, as tests, as a command and as a report.
In: a plugin, and a workload that makes its device do work.
Out: per check whether it holds; where not, what was expected, what came, the likely cause and the page that explains it.
Never: knows a vendor, asserts how long something takes, or changes the plugin.
"""

from devprof.testing.conformance.bench import Bench, Capture, Settings
from devprof.testing.conformance.case import REPORTS, ProfilerConformance, without_torch
from devprof.testing.conformance.catalogue import CHECKS
from devprof.testing.conformance.features import features_of
from devprof.testing.conformance.pages import explanation, sections
from devprof.testing.conformance.recorded import KitRecorder, ReplayConformance, replayed, settings_of
from devprof.testing.conformance.report import Finding, Report, State, judge, run_checks, settle
from devprof.testing.conformance.subject import WORKLOADS, Subject, made, workload_of
from devprof.testing.conformance.table import Area, Check, CheckFailed, Missing, Undecided
from devprof.testing.conformance.workload import Device, Workload

__all__ = [
    "CHECKS",
    "REPORTS",
    "WORKLOADS",
    "Area",
    "Bench",
    "Capture",
    "Check",
    "CheckFailed",
    "Device",
    "Finding",
    "KitRecorder",
    "Missing",
    "ProfilerConformance",
    "ReplayConformance",
    "Report",
    "Settings",
    "State",
    "Subject",
    "Undecided",
    "Workload",
    "explanation",
    "features_of",
    "judge",
    "made",
    "replayed",
    "run_checks",
    "sections",
    "settings_of",
    "settle",
    "without_torch",
    "workload_of",
]
