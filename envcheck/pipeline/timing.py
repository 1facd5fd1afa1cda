"""How long the stages of a run took."""

from __future__ import annotations

import os
import time

from envcheck.model.runs import Stage


class Timing:
    """The stages of a run, each from the end of the one before."""

    def __init__(self) -> None:
        self.stages: tuple[Stage, ...] = ()
        self._began = self._ended = time.monotonic()
        self._processor = time.process_time()

    @classmethod
    def since_start(cls) -> Timing:
        """That of a program, with its start as the first stage where Linux tells when that was."""
        timing = cls()
        try:
            with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
                ticks = int(file.read().rpartition(b")")[2].split()[19])
            age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError, AttributeError):
            return timing
        timing.stages = (Stage(name="start", seconds=round(age, 4), processor=round(timing._processor, 4)),)
        return timing

    def end(self, name: str) -> None:
        """The stage that began where the last one ended is over, or a part of it if it has that name already."""
        now, processor = time.monotonic(), time.process_time()
        before = next((stage for stage in self.stages if stage.name == name), Stage(name=name))
        stage = Stage(
            name=name,
            seconds=round(before.seconds + now - self._ended, 4),
            processor=round(before.processor + processor - self._processor, 4),
        )
        self.stages = (*(each for each in self.stages if each is not before), stage)
        self._ended, self._processor = now, processor

    @property
    def seconds(self) -> float:
        """Since the first stage began, without the start."""
        return time.monotonic() - self._began
