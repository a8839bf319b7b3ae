package telegram_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	pngs "image/png"
)

// png is a picture of one pixel.
var png = picture(1, 1)

func picture(width, height int) []byte {
	var b bytes.Buffer
	_ = pngs.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White}))
	return b.Bytes()
}

func jpegPicture(width, height int) []byte {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil)
	return b.Bytes()
}

func gifPicture(width, height int) []byte {
	var b bytes.Buffer
	_ = gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White}), nil)
	return b.Bytes()
}
