package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

func soak(ctx context.Context, bin string, random *rand.Rand, lasts time.Duration, out io.Writer) (v *verdict, err error) {
	return nil, errors.New("not yet")
}
