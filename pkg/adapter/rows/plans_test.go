package rows_test

import (
	"testing"

	"arizuko/pkg/store/storetest"
)

func TestQueryPlans(t *testing.T) {
	t.Parallel()
	storetest.CheckStatements(t)
}
