package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

func TestRun_ListsModulesOnce(t *testing.T) {
	self, err := os.Executable() // this test is a Go program, too
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(out, "v1.2.3", []string{self, self}); err != nil {
			t.Fatal(err)
		}
	}
	var b bill
	if err := json.Unmarshal(first.Bytes(), &b); err != nil || b.Format != "CycloneDX" || b.Metadata.Component.Version != "v1.2.3" {
		t.Fatalf("%v\n%s", err, &first)
	}
	stdlib := 0
	for _, c := range b.Components {
		if c.Name == "stdlib" {
			stdlib++
		}
	}
	if stdlib != 1 || !slices.ContainsFunc(b.Components, func(c component) bool { return c.Name == "sbom.test" && c.Version == "v1.2.3" }) {
		t.Errorf("components %+v", b.Components)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same programs have two bills")
	}
	for _, programs := range [][]string{nil, {"/etc/hostname"}} {
		if err := run(&bytes.Buffer{}, "v1", programs); err == nil {
			t.Errorf("%q: no error", programs)
		}
	}
}
