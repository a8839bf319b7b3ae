package failpoint

import (
	"slices"
	"testing"
)

func TestPointsHaveDifferentNames(t *testing.T) {
	all := All()
	slices.Sort(all)
	if same := len(all) - len(slices.Compact(all)); same != 0 {
		t.Errorf("%d names stand for more than one point", same)
	}
	if !Known(AnswerTurn.Before()) || !Known(Sent) || Known("") || Known("sent.before") {
		t.Error("Known knows something else")
	}
}
