package console

import (
	"net/http"
	"net/url"
	"strconv"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
)

// idOf reads the number of a row, such as of a turn.
func idOf(text, of string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, apierr.New(apierr.BadRequest, "The address needs the number of a %s.", of)
	}
	return id, nil
}

// position reads where a list continues: before a row, 0 for the beginning of the list.
func position(values url.Values) (int64, error) {
	text := values.Get("before")
	if text == "" {
		return 0, nil
	}
	id, err := idOf(text, "row")
	if err != nil {
		err = apierr.New(apierr.BadRequest, "This address is not valid: start from the first page of the list.")
	}
	return id, err
}

// paged is the part of a list that a page shows, and the address of the rest. One row more than that was read.
func paged[T any](r *http.Request, list []T, parameter string, id func(T) int64) (page []T, next string) {
	if len(list) <= maxRows {
		return list, ""
	}
	return list[:maxRows], below(r, parameter, strconv.FormatInt(id(list[maxRows-1]), 10))
}

// older is the address of the rest of a list, with the same filters: the rows before one.
func older(r *http.Request, last int64) string {
	return below(r, "before", strconv.FormatInt(last, 10))
}

// choices are links to the lists of a path, one for each value of state: pairs are values and texts. The current one is
// marked.
func choices(path string, query url.Values, current string, pairs ...string) (all []pages.Choice) {
	for i := 0; i < len(pairs); i += 2 {
		query.Set("state", pairs[i])
		if pairs[i] == "" {
			query.Del("state")
		}
		address := url.URL{Path: path, RawQuery: query.Encode()}
		all = append(all, pages.Choice{Link: pages.Link{Path: address.String(), Text: pairs[i+1]},
			Current: pairs[i] == current})
	}
	return all
}

// below is the address of another part of a list, with the same filters: pairs are parameters and their values.
func below(r *http.Request, pairs ...string) string {
	q := r.URL.Query()
	q.Del(flashParameter)
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	for name := range q {
		if q.Get(name) == "" {
			q.Del(name)
		}
	}
	return (&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String()
}
