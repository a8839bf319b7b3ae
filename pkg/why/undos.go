package why

import (
	factrows "arizuko/pkg/facts/rows"
)

// Undone says what became of an undo, after the name of its turn.
func Undone(u *factrows.Undo) string {
	by := u.By
	if u.Name != "" {
		by = u.Name + " (" + u.By + ")"
	}
	what := "taken back"
	if u.Redo {
		what = "done again"
	}
	switch {
	case u.State == factrows.UndoOpen:
		return "is being " + what + " for " + by
	case u.FilesChanged():
		return "was not " + what + " for " + by + ": files have changed since"
	case u.State == factrows.UndoRefused:
		return "was not " + what + " for " + by
	}
	return "was " + what + " by " + by
}
