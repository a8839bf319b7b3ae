package failpoint

import (
	"slices"
	"testing"
)

func TestPoints_NamesAreUnique(t *testing.T) {
	all := All()
	slices.Sort(all)
	if same := len(all) - len(slices.Compact(all)); same != 0 {
		t.Errorf("%d names stand for more than one point", same)
	}
	if !Known(AnswerTurn.Before()) || !Known(Sent) || Known("") || Known("sent.before") {
		t.Error("Known and All disagree")
	}
}
