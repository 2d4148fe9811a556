"""Drawing: an SVG image of rings, strips and words, readable on light and on dark pages."""

import html
import math

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #7a7a7a }
.title { font-size: 14px; font-weight: 600 } .small { font-size: 10px } .bold { font-weight: 600 }
.middle { text-anchor: middle } .end { text-anchor: end }
.slots { fill: none; stroke: #8886; stroke-width: 1 }
.soft { fill: none; stroke: #8884; stroke-width: 1 }
.timer { fill: #228be6 } .name { fill: #228be6; font-weight: 600 }
.hand { fill: #e8590c } .hand-line { stroke: #e8590c; stroke-width: 2; fill: none }
.hand-name { fill: #e8590c }
.fired { fill: #2f9e44; font-weight: 600 } .refused { fill: #e03131 }
.gone { fill: #8882 } .on-timer { fill: #fff }
""".strip()


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    def __init__(self, title: str, width: int, height: int):
        self.title, self.width, self.height = title, width, height
        self.style = STYLE
        self.parts = []

    def svg(self) -> str:
        size = (
            f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        )
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<title>{html.escape(self.title)}</title><style>{self.style}</style>",
            f'<text class="title" x="12" y="22">{html.escape(self.title)}</text>',
        ]
        return "\n".join(head + self.parts + ["</svg>\n"])

    def text(self, x: float, y: float, words: str, style: str = "") -> None:
        style = f' class="{style}"' if style else ""
        self.parts.append(
            f'<text{style} x="{number(x)}" y="{number(y)}">{html.escape(words)}</text>'
        )

    def path(self, steps: str, style: str) -> None:
        self.parts.append(f'<path class="{style}" d="{steps}"/>')

    def rect(self, x: float, y: float, width: float, height: float, style: str) -> None:
        place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self.parts.append(f'<rect class="{style}" {place}/>')

    def circle(self, x: float, y: float, radius: float, style: str) -> None:
        self.parts.append(
            f'<circle class="{style}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>'
        )


class Strip:
    """A level of a wheel, unrolled: slot 0 at the left."""

    def __init__(
        self, drawing: Drawing, x: float, y: float, width: float, height: float, slots: int
    ):
        self.drawing, self.x, self.y, self.width, self.height, self.slots = (
            drawing,
            x,
            y,
            width,
            height,
            slots,
        )
        self.cell = width / slots
        drawing.rect(x, y, width, height, "slots")
        step = 1 if self.cell >= 6 else 16
        lines = "".join(
            f"M{number(self.left(slot))} {number(y)}v{number(height)}"
            for slot in range(step, slots, step)
        )
        drawing.path(lines, "soft")

    def left(self, slot: int) -> float:
        return self.x + slot * self.cell

    def middle(self, slot: int) -> float:
        return self.left(slot) + self.cell / 2

    def hand(self, slot: int) -> None:
        """A mark on top of the strip, and a line through it."""
        x = number(self.middle(slot))
        self.drawing.path(f"M{x} {number(self.y - 1)}l-4 -6h8z", "hand")
        self.drawing.path(f"M{x} {number(self.y)}v{number(self.height)}", "hand-line")

    def timer(self, slot: int, name: str) -> None:
        """Fills the slot, and writes `name` beside it."""
        half = max(self.cell - 2, 3) / 2
        x, y = self.middle(slot), self.y + self.height / 2 + 4
        self.drawing.rect(x - half, self.y + 2, 2 * half, self.height - 4, "timer")
        if x > self.x + self.width * 0.8:
            self.drawing.text(x - half - 5, y, name, "name end")
        else:
            self.drawing.text(x + half + 5, y, name, "name")


class Ring:
    """A level of a wheel as a wheel: slot 0 at the top, then clockwise."""

    def __init__(
        self, drawing: Drawing, x: float, y: float, inner: float, outer: float, slots: int
    ):
        self.drawing, self.x, self.y, self.inner, self.outer, self.slots = (
            drawing,
            x,
            y,
            inner,
            outer,
            slots,
        )
        drawing.circle(x, y, outer, "slots")
        drawing.circle(x, y, inner, "slots")
        lines = "".join(
            f"M{self.at(slot - 0.5, inner)}L{self.at(slot - 0.5, outer)}" for slot in range(slots)
        )
        drawing.path(lines, "soft")

    def at(self, slot: float, radius: float) -> str:
        x, y = self.point(slot, radius)
        return f"{number(x)} {number(y)}"

    def point(self, slot: float, radius: float) -> tuple:
        turn = slot / self.slots * 2 * math.pi
        return self.x + radius * math.sin(turn), self.y - radius * math.cos(turn)

    def numbers(self, taken: set) -> None:
        """Writes its number in each slot; in white where a timer is."""
        for slot in range(self.slots):
            x, y = self.point(slot, (self.inner + self.outer) / 2)
            self.drawing.text(
                x, y + 3.5, str(slot), "small middle" + (" on-timer" if slot in taken else "")
            )

    def hand(self, slot: int) -> None:
        tip = self.inner - 3
        self.drawing.path(f"M{number(self.x)} {number(self.y)}L{self.at(slot, tip)}", "hand-line")
        self.drawing.circle(self.x, self.y, 3, "hand")

    def timer(self, slot: int) -> None:
        """Fills the slot."""
        begin, end = slot - 0.5, slot + 0.5
        steps = (
            f"M{self.at(begin, self.inner)}L{self.at(begin, self.outer)}"
            f"A{number(self.outer)} {number(self.outer)} 0 0 1 {self.at(end, self.outer)}"
            f"L{self.at(end, self.inner)}"
            f"A{number(self.inner)} {number(self.inner)} 0 0 0 {self.at(begin, self.inner)}Z"
        )
        self.drawing.path(steps, "timer")

    def label(self, slot: int, lines: list) -> None:
        """Words outside of the ring, beside the slot."""
        radius = self.outer + 8
        x, y = self.point(slot, radius)
        side = (x - self.x) / radius
        anchor = " middle" if abs(side) < 0.3 else " end" if side < 0 else ""
        y += 4 if abs(side) >= 0.3 else 10 if y > self.y else -2
        for index, words in enumerate(lines):
            self.drawing.text(x, y + 13 * index, words, "name" + anchor)
