package rows

import (
	"context"

	"arizuko/pkg/store"
)

// LastRuntimes returns how each folder's newest run was run, of the newest 1,000.
func LastRuntimes(ctx context.Context, r store.Reader) (map[string]string, error) {
	runtimes := map[string]string{}
	err := r.Each(ctx, func(scan store.Scan) (bool, error) {
		var folder, runtime string
		err := scan(&folder, &runtime)
		if _, newer := runtimes[folder]; !newer {
			runtimes[folder] = runtime
		}
		return true, err
	}, queryLastRuntimes, 1000)
	return runtimes, err
}
