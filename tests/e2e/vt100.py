# SPDX-License-Identifier: GPL-2.0-only
"""What a VT100 shows of what a program writes to it: as much of one as the terminal descriptions vt100, linux and xterm
use. A sequence that it does not know is a failed test."""
import re

SEQUENCE = re.compile(rb"\x1b\[([?>]?)([\d;]*)([@-~])|\x1b([()])(.)|\x1b([=>78MDEHc])", re.DOTALL)
IGNORED = b"hltcn"  # modes, reports


class Vt100:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.lines = [[" "] * width for _ in range(height)]
        self.x = self.y = 0
        self.wrap = False  # the last column was written: the next character goes to the next line
        self.colours = set()
        self.top, self.bottom = 0, height - 1  # of the region that scrolls
        self.last = " "

    def resize(self, width, height):
        self.__init__(width, height)

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    def feed(self, data):
        """All but an incomplete end, which is returned: it belongs before what comes next."""
        at = 0
        while at < len(data):
            byte = data[at]
            if byte == 0x1b:
                match = SEQUENCE.match(data, at)
                if not match:
                    assert len(data) - at < 24, f"unknown sequence {data[at:at + 24]!r}"
                    return data[at:]
                self._sequence(match)
                at = match.end()
            elif byte < 0x20 or byte == 0x7f:
                self._control(byte)
                at += 1
            else:
                length = 1 if byte < 0x80 else 2 if byte < 0xe0 else 3 if byte < 0xf0 else 4
                if at + length > len(data):
                    return data[at:]
                self._put(data[at:at + length].decode())
                at += length
        return b""

    def _put(self, character):
        if self.wrap:
            self.x = 0
            self._down()
        self.lines[self.y][self.x] = self.last = character
        self.wrap = self.x == self.width - 1
        self.x = min(self.x + 1, self.width - 1)

    def _down(self):
        self.wrap = False
        if self.y == self.bottom:
            self._scroll(self.top, 1)
        elif self.y < self.height - 1:
            self.y += 1

    def _scroll(self, top, lines):
        """Lines from this one to the end of the region: up, or down where the number is negative."""
        region, empty = self.lines[top:self.bottom + 1], [[" "] * self.width for _ in range(abs(lines))]
        region = (region[lines:] + empty)[-len(region):] if lines > 0 else (empty + region)[:len(region)]
        self.lines[top:self.bottom + 1] = region

    def _control(self, byte):
        self.wrap = False
        if byte == 0x0d:
            self.x = 0
        elif byte == 0x0a:
            self._down()
        elif byte == 0x08:
            self.x = max(self.x - 1, 0)
        elif byte == 0x09:
            self.x = min((self.x // 8 + 1) * 8, self.width - 1)
        else:
            assert byte in (0x00, 0x07, 0x0e, 0x0f), f"control character {byte:#x}"

    def _erase(self, begin, end):
        for i in range(begin, end):
            self.lines[i // self.width][i % self.width] = " "

    def _sequence(self, match):
        private, parameters, final = match[1], match[2], match[3]
        if match[6] == b"M" and self.y == self.top:
            self._scroll(self.top, -1)
        elif match[6] == b"M":
            self.y = max(self.y - 1, 0)
        elif match[6] == b"D":
            self._down()
        if final is None or private:
            return
        numbers = [int(part or 0) for part in parameters.split(b";")]
        first, here = max(numbers[0], 1), self.y * self.width + self.x
        self.wrap = self.wrap and final == b"m"
        if final == b"m":
            self.colours |= {n for n in numbers if 30 <= n <= 37 or 90 <= n <= 97}
        elif final in b"Hf":
            row, column = (numbers + [0])[:2]
            self.y, self.x = min(max(row, 1), self.height) - 1, min(max(column, 1), self.width) - 1
        elif final == b"J":
            self._erase(here if numbers[0] == 0 else 0, here + 1 if numbers[0] == 1 else self.width * self.height)
        elif final == b"K":
            line = self.y * self.width
            self._erase(here if numbers[0] == 0 else line, here + 1 if numbers[0] == 1 else line + self.width)
        elif final == b"X":
            self._erase(here, min(here + first, (self.y + 1) * self.width))
        elif final == b"A":
            self.y = max(self.y - first, 0)
        elif final == b"B":
            self.y = min(self.y + first, self.height - 1)
        elif final == b"C":
            self.x = min(self.x + first, self.width - 1)
        elif final == b"D":
            self.x = max(self.x - first, 0)
        elif final == b"G":
            self.x = min(first, self.width) - 1
        elif final == b"d":
            self.y = min(first, self.height) - 1
        elif final == b"P":
            line = self.lines[self.y]
            self.lines[self.y] = line[:self.x] + line[self.x + first:] + [" "] * min(first, self.width - self.x)
        elif final == b"@":
            line = self.lines[self.y]
            self.lines[self.y] = (line[:self.x] + [" "] * first + line[self.x:])[:self.width]
        elif final in b"LM":
            self._scroll(self.y, first if final == b"M" else -first)
        elif final in b"ST":
            self._scroll(self.top, first if final == b"S" else -first)
        elif final == b"b":
            for _ in range(first):
                self._put(self.last)
        elif final == b"r":
            top, bottom = (numbers + [0])[:2]
            self.top, self.bottom = max(top, 1) - 1, (bottom or self.height) - 1
            self.y = self.x = 0
        else:
            assert final in IGNORED, f"unknown sequence {match[0]!r}"
