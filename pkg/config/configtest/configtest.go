// Package configtest keeps the page of variables equal to the configuration structs.
package configtest

import (
	"testing"

	"arizuko/pkg/config"
	"arizuko/pkg/golden"
)

// CheckTable fails the test unless the page at path, docs/reference/environment.md, holds config.Table(cfg, shared...)
// between the comments `<!-- section:start -->` and `<!-- section:end -->`, and every variable has a doc tag. With the
// test flag -update it rewrites the page instead.
func CheckTable[T any](t testing.TB, path, section string, cfg T, shared ...any) {
	t.Helper()
	for _, setting := range config.Show(cfg) {
		if setting.Doc == "" {
			t.Errorf("%s has no doc tag", setting.Name)
		}
	}
	golden.CompareSection(t, path, section, config.Table(cfg, shared...))
}
