"""What `skillshelf doctor` says about the agent's model: the agent's entry point in the group `skillshelf.doctor`."""

from collections.abc import Iterator

from skillshelf.cli import Remark
from skillshelf.settings import Settings, without_secrets
from skillshelf_agent import ModelPreview, preview_model


def examine_model(settings: Settings) -> Iterator[Remark]:
    """Yield what `skillshelf doctor` says about the model that the settings mean."""
    yield _describe_model(preview_model(settings), settings)


def _describe_model(model: ModelPreview, settings: Settings) -> Remark:
    area = "model"
    variables = " or ".join(model.key_variables)
    if model.alternatives:
        return Remark(
            area,
            "note",
            "none is chosen, and the keys of several providers are set",
            f"Pass --model, or put it into the settings: {', '.join(model.alternatives)}",
        )
    if not model.name and settings.base_url:
        return Remark(area, "problem", "there is a base_url but no model", "Set model to the server's name for it.")
    if not model.name:
        return Remark(
            area,
            "note",
            "none is chosen; only chat and eval need one",
            "Set a provider's key, such as ANTHROPIC_API_KEY, or see `skillshelf chat`.",
        )
    if model.is_default:
        return Remark(area, "ok", f"{model.name}, because {variables} is set", value=model.name)
    if not model.has_key:
        return Remark(area, "problem", f"{model.name} needs a key, and there is none", f"Set {variables}.", model.name)
    if model.key_variables:
        return Remark(area, "ok", f"{model.name}; {variables} is set", value=model.name)
    if settings.base_url:
        return Remark(area, "ok", f"{model.name} at {without_secrets(settings.base_url)}", value=model.name)
    return Remark(area, "ok", model.name, value=model.name)
