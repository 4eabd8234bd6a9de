"""The words of Muster: specs, phases, events, facts, instructions, reasons. Values only; no behaviour that decides."""
