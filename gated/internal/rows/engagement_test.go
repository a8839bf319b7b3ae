package rows_test

import (
	"testing"

	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func deliver(t *testing.T, s *store.Store, d store.Delivery, now int64) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutDelivery(d, now) })
}
