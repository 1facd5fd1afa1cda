"""The terminal application over a replayed benchmark."""

from functools import partial

from benchmarks.replayed_bench import gather
from envcheck.collect.plan import BenchRequest
from envcheck.pipeline.request import Request
from envcheck.report import Options
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.worker.sessions import examine_in_worker

if __name__ == "__main__":
    EnvcheckApp(Request(bench=BenchRequest()), Options(), examine=partial(examine_in_worker, gather=gather)).run()
