"""Formulas as MathML, which browsers draw themselves: without a script, and without a network."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def setup(app: Any) -> dict[str, Any]:
    """Registers the renderer as ``mathml``, which ``html_math_renderer`` of the configuration chooses."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(page: Any, node: Any) -> None:
    page.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(page: Any, node: Any) -> None:
    page.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode
