package store_test

import (
	"testing"

	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestQueryPlans(t *testing.T) {
	t.Parallel()
	storetest.CheckPlans(t, store.AllPlans())
}
