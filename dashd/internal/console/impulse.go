package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/msg"
)

// impulseFields reads stored settings as an operator types them; ok is false if they are invalid.
func impulseFields(config json.RawMessage) (f pages.Impulse, ok bool) {
	if len(config) == 0 {
		return f, true
	}
	if _, err := (msg.Impulse{}).Merge(config); err != nil {
		return f, false
	}
	var set struct {
		Quiet     *int64         `json:"quiet_ms"`
		Hold      *int64         `json:"max_hold_ms"`
		Threshold *int           `json:"threshold"`
		Weights   map[string]int `json:"weights"`
	}
	if json.Unmarshal(config, &set) != nil {
		return f, false
	}
	if set.Quiet != nil {
		f.Quiet = duration(*set.Quiet)
	}
	if set.Hold != nil {
		f.Hold = duration(*set.Hold)
	}
	if set.Threshold != nil {
		f.Threshold = strconv.Itoa(*set.Threshold)
	}
	var weights []string
	for _, verb := range slices.Sorted(maps.Keys(set.Weights)) {
		if strings.ContainsAny(verb, "= \t\n") {
			return f, false
		}
		weights = append(weights, fmt.Sprintf("%s=%d", verb, set.Weights[verb]))
	}
	f.Weights = strings.Join(weights, " ")
	return f, true
}

// duration writes milliseconds as an operator would: 500ms, 3s, 5m.
func duration(ms int64) string {
	switch {
	case ms%1000 != 0:
		return fmt.Sprintf("%dms", ms)
	case ms >= 60_000 && ms%60_000 == 0:
		return fmt.Sprintf("%dm", ms/60_000)
	}
	return fmt.Sprintf("%ds", ms/1000)
}

// impulseConfig is the settings as JSON, nil if none is set.
func impulseConfig(f pages.Impulse) (json.RawMessage, error) {
	set := map[string]any{}
	for _, each := range []struct{ name, field, text string }{{"quiet_ms", "wait for silence", f.Quiet},
		{"max_hold_ms", "wait at most", f.Hold}} {
		if each.text == "" {
			continue
		}
		ms, err := milliseconds(each.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.field, err)
		}
		set[each.name] = ms
	}
	if f.Threshold != "" {
		n, err := strconv.ParseUint(f.Threshold, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("the weight that starts a turn is a whole number, not %.40q", f.Threshold)
		}
		set["threshold"] = n
	}
	weights := map[string]uint64{}
	for pair := range strings.FieldsSeq(f.Weights) {
		verb, text, _ := strings.Cut(pair, "=")
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || verb == "" {
			return nil, fmt.Errorf("weights are written as reaction=0 message=50, not %.40q", pair)
		}
		weights[verb] = n
	}
	if len(weights) > 0 {
		set["weights"] = weights
	}
	if len(set) == 0 {
		return nil, nil
	}
	return json.Marshal(set)
}

// milliseconds reads 500ms, 3s, 5m or a number of seconds.
func milliseconds(text string) (int64, error) {
	if _, err := strconv.ParseUint(text, 10, 31); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d%time.Millisecond != 0 {
		return 0, fmt.Errorf("a time is written as 500ms, 3s or 5m, not %.40q", text)
	}
	return d.Milliseconds(), nil
}
