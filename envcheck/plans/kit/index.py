"""Package indexes: which builds of PyTorch an installer would find where it is told to look."""

from __future__ import annotations

from dataclasses import dataclass

from envcheck.plans.kit.sheet import Sheet


@dataclass
class Index:
    """Where an installer looks; an extra index may have a newer build of the same release, which pip prefers."""

    main: str | None = None
    extra: tuple[str, ...] = ()
    links: bool = False
    none: bool = False
    """Only files that it is given count."""

    def take(self, meaning: str, value: str) -> bool:
        """Note an option that says where to look; False for any other."""
        if meaning == "index":
            self.main = value
        elif meaning == "extra":
            self.extra = (*self.extra, *value.split())
        elif meaning == "backend":
            self.extra = (*self.extra, f"https://download.pytorch.org/whl/{value}")
        elif meaning == "links":
            self.links = True
        elif meaning == "none":
            self.none = True
        else:
            return False
        return True

    def build(self, sheet: Sheet) -> str | None:
        """Local tag of PyTorch's builds there, empty for PyPI's own; None: not known."""
        if self.none:
            return None
        builds = [sheet.build_of(each) for each in (self.main, *self.extra)]
        if self.links:
            builds.append(None)
        tags = {each for each in builds if each}
        if len(tags) > 1 or (None in builds and not tags):
            return None
        return tags.pop() if tags else ""
