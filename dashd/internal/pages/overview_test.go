package pages_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
)

func TestMinutes_Bars_FillTheChart(t *testing.T) {
	m := pages.Minutes{Rows: []rows.Minute{{}, {In: 1, Out: 1}, {In: 3}, {In: 200, Out: 200}}}
	want := []pages.Bar{{X: 10, InY: 79, InHeight: 1, OutY: 79}, {X: 20, InY: 79, InHeight: 1, OutY: 79}, {X: 30, InY: 40, InHeight: 40, OutHeight: 40}}
	if diff := cmp.Diff(want, m.Bars()); diff != "" {
		t.Error(diff)
	}
	if got := m.Words(); got != "In the last hour 204 came in and 201 went out, at most 400 a minute." {
		t.Error(got)
	}
	if m.Partly = true; m.Words() != "In the last hour at least 204 came in and 201 went out, at most 400 a minute." {
		t.Error(m.Words())
	}
	if none := (pages.Minutes{Rows: make([]rows.Minute, 1)}); none.Bars() != nil || none.Words() != "No messages in the last hour." {
		t.Errorf("%v %s", none.Bars(), none.Words())
	}
}
