package tools

import (
	"testing"

	"arizuko/pkg/golden"
)

func TestPage_IsDocsToolsPage(t *testing.T) {
	t.Parallel()
	golden.Compare(t, "../../../docs/tools.md", Page())
}
