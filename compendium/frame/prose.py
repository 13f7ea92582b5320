"""Prose that is about one profile's data: Markdown cells tagged with a profile's name are shown in its runs alone."""


def of_profile(cells: list, profile: str, profiles) -> list:
    """Cells of a notebook without the Markdown that is tagged for another of `profiles`."""

    def elsewhere(cell) -> bool:
        tags = set(cell.get("metadata", {}).get("tags", [])) & set(profiles)
        return cell["cell_type"] == "markdown" and bool(tags) and profile not in tags

    return [cell for cell in cells if not elsewhere(cell)]
