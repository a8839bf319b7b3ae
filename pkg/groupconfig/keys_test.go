package groupconfig

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The reference of routd has the table of keys.
func TestKeys_Readme_HasTheTable(t *testing.T) {
	readme, err := os.ReadFile("../../routd/README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| key | value |\n|---|---|\n"
	for _, k := range Keys() {
		table += fmt.Sprintf("| `%s` | %s |\n", k.Path, k.Help)
	}
	if !strings.Contains(string(readme), table) {
		t.Errorf("routd/README.md, under A group's config, wants:\n%s", table)
	}
}

// Each choice is valid, and each key with choices is a text in the configuration.
func TestKeys_Choices_AreValid(t *testing.T) {
	for _, k := range Keys() {
		if (k.Kind == KindChoice) != (len(k.Choices) > 0) {
			t.Errorf("%s: kind %s with choices %v", k.Path, k.Kind, k.Choices)
		}
		for _, choice := range k.Choices {
			text := fmt.Sprintf("%q", choice)
			for _, name := range reverse(strings.Split(k.Path, ".")) {
				text = fmt.Sprintf("{%q:%s}", name, text)
			}
			if _, err := Parse([]byte(text)); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		if k.Help == "" || strings.Contains(k.Help, "\n") || strings.Contains(k.Help, "|") {
			t.Errorf("%s: help %q", k.Path, k.Help)
		}
	}
	if k := Keys()[slices.IndexFunc(Keys(), func(k Key) bool { return k.Path == "observe" })]; !reflect.DeepEqual(k.Choices, []string{"shared", "all", "none"}) {
		t.Errorf("observe: %v", k.Choices)
	}
}

func reverse(all []string) []string { slices.Reverse(all); return all }
