"""Runs untrusted user hooks of LLM agents by exact rules. The rules are numbered in SEMANTICS.md (P1, C2, G4…)."""
