"""Assembly listings, cut into functions."""

from __future__ import annotations

from hologram.backends.cpu.listing import functions


def test_listings_are_cut_into_functions() -> None:
    text = "\t.section .rodata\n.LC0:\n\t.long 1\n\t.text\n\t.globl f\nf:\n\t.cfi_startproc\n\tmovq %rdi, %rax\n.LBB0_1:\n\tret\n\n_g:\n\tnop\n"
    found = functions(text)
    assert found == {"f": "  movq %rdi, %rax\n.LBB0_1:\n  ret", "g": "  nop"}
