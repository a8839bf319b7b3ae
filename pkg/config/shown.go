package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Shown is a setting as it may be shown to an operator.
type Shown struct {
	Name, Doc string
	Value     string // of a secret "set" or "not set"
	Default   bool   // it has the value that it has without a variable
}

// Show returns the settings of a loaded configuration, in the order of its fields. No value of a secret is in it.
func Show[T any](cfg T) (all []Shown) {
	for _, s := range settings(reflect.ValueOf(&cfg).Elem(), "") {
		shown := Shown{Name: s.name, Doc: s.doc(), Default: s.value.IsZero()}
		switch {
		case s.secret && s.value.IsZero():
			shown.Value = "not set"
		case s.secret:
			shown.Value = "set"
		case s.value.Kind() == reflect.Slice:
			parts := make([]string, s.value.Len())
			for i := range parts {
				parts[i] = fmt.Sprint(s.value.Index(i).Interface())
			}
			shown.Value = strings.Join(parts, ",")
		default:
			shown.Value = fmt.Sprint(s.value.Interface())
		}
		if usual := s.field.Tag.Get("envDefault"); usual != "" {
			shown.Default = strings.EqualFold(shown.Value, usual)
		}
		all = append(all, shown)
	}
	return all
}
