package tools

import (
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// property is the schema of a field, named as "field", "list[]" or "list[].field". It
// panics if there is none: a bound that limits nothing is a mistake in the program.
func property(tool string, s *jsonschema.Schema, path string) *jsonschema.Schema {
	at := s
	for name := range strings.SplitSeq(path, ".") {
		field, isList := strings.CutSuffix(name, "[]")
		if at = at.Properties[field]; at != nil && isList {
			at = at.Items
		}
		if at == nil {
			panic(fmt.Sprintf("%s has no field %q", tool, path))
		}
	}
	return at
}
