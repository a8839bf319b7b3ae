// Package configtest keeps a README's table of variables equal to the configuration struct.
package configtest

import (
	"testing"

	"arizuko/pkg/config"
	"arizuko/pkg/golden"
)

// CheckTable fails the test unless the README at path holds config.Table(cfg) between the
// comments `<!-- config:start -->` and `<!-- config:end -->`, and every variable has a doc tag.
// With the test flag -update it rewrites the README instead.
func CheckTable[T any](t testing.TB, path string, cfg T) {
	t.Helper()
	for _, name := range config.Undocumented(cfg) {
		t.Errorf("%s has no doc tag", name)
	}
	golden.CompareSection(t, path, "config", config.Table(cfg))
}
