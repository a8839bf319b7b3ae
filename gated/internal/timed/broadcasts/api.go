package broadcasts

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"arizuko/pkg/httpx"
)

// Path is the endpoint of gated that sends a broadcast.
const Path = "/v1/broadcasts"

// Mount adds the endpoint. The router must check the bearer secret.
func (b *Broadcasts) Mount(r chi.Router) {
	r.Post(Path, func(w http.ResponseWriter, r *http.Request) {
		request, err := httpx.Decode[Request](r)
		if err != nil {
			httpx.Error(w, err)
			return
		}
		sent, err := b.Send(r.Context(), request)
		if err != nil {
			httpx.Error(w, err)
			return
		}
		httpx.JSON(w, http.StatusAccepted, sent)
	})
}
