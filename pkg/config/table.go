package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Table renders a configuration struct as a markdown table: one row per variable with its default and its meaning.
// Those of the structs in shared are left out.
func Table[T any](cfg T, shared ...any) string {
	var b strings.Builder
	b.WriteString("| variable | default | meaning |\n|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	elsewhere := map[string]bool{}
	for _, of := range shared {
		for _, s := range settings(reflect.ValueOf(of), "") {
			elsewhere[s.name] = true
		}
	}
	for _, s := range settings(reflect.ValueOf(&cfg).Elem(), "") {
		if elsewhere[s.name] {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.label(), cell.Replace(s.defaultText()), cell.Replace(s.doc()))
	}
	return b.String()
}

func (s setting) doc() string { return s.field.Tag.Get("doc") }

func (s setting) label() string {
	if s.secret {
		return fmt.Sprintf("`%s` (or `%s_FILE`)", s.name, s.name)
	}
	return "`" + s.name + "`"
}

func (s setting) defaultText() string {
	if value := s.field.Tag.Get("envDefault"); value != "" {
		return "`" + value + "`"
	}
	for _, option := range strings.Split(s.field.Tag.Get("env"), ",")[1:] {
		if option == "required" || option == "notEmpty" {
			return "required"
		}
	}
	return ""
}

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
