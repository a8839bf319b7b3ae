package msg

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWeight(t *testing.T) {
	impulse := DefaultImpulse(100, 5*time.Minute)
	for verb, want := range map[string]int{
		"": 100, "message": 100, "mention": 100, "reply": 100, "anything": 100,
		"reaction": 0, "typing": 0,
	} {
		if got := impulse.Weight(verb); got != want {
			t.Errorf("Weight(%q) = %d, want %d", verb, got, want)
		}
	}
	impulse.Weights["message"] = 30
	if got := impulse.Weight(""); got != 30 {
		t.Errorf("the empty verb weighs %d, a message 30", got)
	}
	if got := (Impulse{}).Weight("reaction"); got != 100 {
		t.Errorf("without weights a reaction weighs %d, want 100", got)
	}
}

func TestMerge(t *testing.T) {
	tests := []struct {
		name, config string
		want         Impulse
	}{
		{"nothing", "", Impulse{100, 300_000, 0, map[string]int{"reaction": 0, "typing": 0}}},
		{"null", "null", Impulse{100, 300_000, 0, map[string]int{"reaction": 0, "typing": 0}}},
		{"empty object", " {} ", Impulse{100, 300_000, 0, map[string]int{"reaction": 0, "typing": 0}}},
		{"one field", `{"quiet_ms":1500}`, Impulse{100, 300_000, 1500, map[string]int{"reaction": 0, "typing": 0}}},
		{"zeros", `{"threshold":0,"max_hold_ms":0}`, Impulse{0, 0, 0, map[string]int{"reaction": 0, "typing": 0}}},
		{"weights are merged verb by verb", `{"weights":{"reaction":50,"edit":10}}`,
			Impulse{100, 300_000, 0, map[string]int{"reaction": 50, "typing": 0, "edit": 10}}},
		{"all", `{"threshold":300,"max_hold_ms":2147483647,"quiet_ms":2,"weights":{}}`,
			Impulse{300, 2147483647, 2, map[string]int{"reaction": 0, "typing": 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DefaultImpulse(100, 5*time.Minute).Merge([]byte(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge_Invalid_ReturnsError(t *testing.T) {
	tests := []struct{ config, reason string }{
		{`{`, "not a JSON object"},
		{`[]`, "not a JSON object"},
		{`100`, "not a JSON object"},
		{`"threshold"`, "not a JSON object"},
		{`{} {}`, "not a JSON object"},
		{`{"treshold":1}`, `"treshold": unknown field`},
		{`{"Threshold":1}`, `"Threshold": unknown field`},
		{`{"threshold":-1}`, `"threshold": must be a whole number`},
		{`{"threshold":1.5}`, `"threshold": must be a whole number`},
		{`{"threshold":"100"}`, `"threshold": must be a whole number`},
		{`{"threshold":null}`, `"threshold": must be a whole number`},
		{`{"threshold":true}`, `"threshold": must be a whole number`},
		{`{"max_hold_ms":-300000}`, `"max_hold_ms": must be a whole number`},
		{`{"max_hold_ms":9223372036854775807}`, `"max_hold_ms": must be a whole number`},
		{`{"quiet_ms":1e99}`, `"quiet_ms": must be a whole number`},
		{`{"quiet_ms":-1}`, `"quiet_ms": must be a whole number`},
		{`{"weights":null}`, `"weights": must be an object`},
		{`{"weights":[0]}`, `"weights": must be an object`},
		{`{"weights":{"reaction":-1}}`, `"weights": "reaction": must be a whole number`},
		{`{"weights":{"message":null}}`, `"weights": "message": must be a whole number`},
		{`{"weights":{"edit":2147483648}}`, `"weights": "edit": must be a whole number`},
		{`{"weights":{"":1}}`, `"weights": a verb is empty`},
	}
	for _, tt := range tests {
		got, err := DefaultImpulse(100, time.Minute).Merge([]byte(tt.config))
		if err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("Merge(%s) = %+v, %v; want an error about %s", tt.config, got, err, tt.reason)
		}
	}
}

func TestMerge_DoesNotChangeDefaults(t *testing.T) {
	defaults := DefaultImpulse(100, time.Minute)
	for _, config := range []string{"", `{"weights":{"edit":3}}`} {
		merged, err := defaults.Merge([]byte(config))
		if err != nil {
			t.Fatal(err)
		}
		merged.Weights["reaction"] = 7
		if diff := cmp.Diff(DefaultImpulse(100, time.Minute), defaults); diff != "" {
			t.Fatalf("after Merge(%q) the defaults are (-want +got):\n%s", config, diff)
		}
	}
	if _, err := (Impulse{}).Merge([]byte(`{"weights":{"edit":3}}`)); err != nil {
		t.Fatal(err)
	}
}

func TestMerge_MarshalledImpulse_RoundTrips(t *testing.T) {
	want := Impulse{250, 60_000, 900, map[string]int{"reaction": 20, "typing": 0}}
	config, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DefaultImpulse(100, time.Minute).Merge(config)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}

func FuzzMerge(f *testing.F) {
	for _, seed := range []string{"", "null", `{"threshold":1,"weights":{"edit":3}}`, `{"quiet_ms":-1}`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		got, err := DefaultImpulse(100, time.Minute).Merge(config)
		if err == nil && (got.Threshold < 0 || got.MaxHoldMS < 0 || got.QuietMS < 0 || got.Weight("") < 0) {
			t.Errorf("Merge(%q) = %+v", config, got)
		}
	})
}
