package fakeservertest_test

import (
	"encoding/json"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

// countingTB counts failures.
type countingTB struct {
	testing.TB
	failed int
}

func (c *countingTB) Helper()               {}
func (c *countingTB) Errorf(string, ...any) { c.failed++ }

func TestSubset_Differences_AreReported(t *testing.T) {
	const got = `{"a": 1, "b": {"c": "x", "d": null}, "e": [1, {"f": true, "g": 2}]}`
	for want, differences := range map[string]int{
		`{}`:                            0,
		`{"a": 1}`:                      0,
		`{"b": {"c": "x", "d": null}}`:  0,
		`{"e": [1, {"f": true}]}`:       0,
		`{"z": null, "b": {"z": null}}`: 0,
		`{"a": 2}`:                      1,
		`{"a": "1"}`:                    1,
		`{"a": null}`:                   1,
		`{"a": {"b": 1}}`:               1,
		`{"b": {"c": "y", "d": 1}}`:     2,
		`{"e": [1]}`:                    1,
		`{"e": [2, {"f": false}]}`:      2,
		`{"z": []}`:                     1,
	} {
		var fields map[string]any
		if err := json.Unmarshal([]byte(got), &fields); err != nil {
			t.Fatal(err)
		}
		c := &countingTB{TB: t}
		if fakeservertest.Subset(c, fields, want); c.failed != differences {
			t.Errorf("%s: %d differences, want %d", want, c.failed, differences)
		}
	}
}
