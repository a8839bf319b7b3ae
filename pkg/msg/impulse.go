package msg

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"
)

// FullWeight is the weight of a row whose verb isn't in Impulse.Weights: at the
// usual threshold of 100, one message starts a turn.
const FullWeight = 100

// maxSetting bounds every number of an impulse config: neither a sum of weights nor
// a conversion from milliseconds to nanoseconds overflows. As a hold it is 24 days.
const maxSetting = math.MaxInt32

// Impulse is how long the rows of a chat are held before they start a turn.
type Impulse struct {
	Threshold int            `json:"threshold"`   // summed weight that releases the held rows
	MaxHoldMS int64          `json:"max_hold_ms"` // how long the oldest row waits at most, whatever the weight
	QuietMS   int64          `json:"quiet_ms"`    // the silence to wait for after the last row, 0 for none
	Weights   map[string]int `json:"weights"`     // by verb; one not named weighs 100
}

// DefaultImpulse is the setting of an instance: reactions and typing alone start
// nothing before maxHold.
func DefaultImpulse(threshold int, maxHold time.Duration) Impulse {
	return Impulse{
		Threshold: threshold,
		MaxHoldMS: maxHold.Milliseconds(),
		Weights:   map[string]int{"reaction": 0, "typing": 0},
	}
}

// Weight returns the weight of one row with that verb; the empty verb is a message.
func (i Impulse) Weight(verb string) int {
	if verb == "" {
		verb = "message"
	}
	if weight, ok := i.Weights[verb]; ok {
		return weight
	}
	return FullWeight
}

// Merge returns i with the fields of a route's impulse_config, a JSON object, replaced.
// An empty config or null changes nothing. An unknown field, a wrong type and a number
// below 0 or above 2147483647 are errors. i and its weights are not changed.
func (i Impulse) Merge(config []byte) (Impulse, error) {
	merged := i
	merged.Weights = map[string]int{}
	maps.Copy(merged.Weights, i.Weights)
	if len(config) == 0 {
		return merged, nil
	}
	// A map rather than a struct: a struct takes "THRESHOLD" for "threshold" and
	// null for 0.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(config, &fields); err != nil {
		return Impulse{}, fmt.Errorf("impulse_config is not a JSON object: %w", err)
	}
	for name, value := range fields {
		if err := merged.set(name, value); err != nil {
			return Impulse{}, fmt.Errorf("impulse_config: %.80q: %w", name, err)
		}
	}
	return merged, nil
}

func (i *Impulse) set(name string, value json.RawMessage) error {
	switch name {
	case "threshold":
		return setNumber(&i.Threshold, value)
	case "max_hold_ms":
		return setNumber(&i.MaxHoldMS, value)
	case "quiet_ms":
		return setNumber(&i.QuietMS, value)
	case "weights":
		return setWeights(i.Weights, value)
	default:
		return errors.New("unknown field")
	}
}

func setWeights(weights map[string]int, value json.RawMessage) error {
	var byVerb map[string]json.RawMessage
	if err := json.Unmarshal(value, &byVerb); err != nil || byVerb == nil {
		return errors.New("must be an object of verbs and numbers")
	}
	for verb, value := range byVerb {
		if verb == "" {
			return errors.New("a verb is empty")
		}
		var weight int
		if err := setNumber(&weight, value); err != nil {
			return fmt.Errorf("%.80q: %w", verb, err)
		}
		weights[verb] = weight
	}
	return nil
}

func setNumber[T int | int64](to *T, value json.RawMessage) error {
	var n *T
	if err := json.Unmarshal(value, &n); err != nil || n == nil || *n < 0 || *n > maxSetting {
		return fmt.Errorf("must be a whole number from 0 to %d", maxSetting)
	}
	*to = *n
	return nil
}
