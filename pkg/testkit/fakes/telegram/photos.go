package telegram

import (
	"bytes"
	"encoding/binary"
	"image"

	// The formats of pictures that Telegram reads, besides WebP.
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
)

// The documented limits of a photo, in pixels.
const (
	maxPhotoSum   = 10_000 // width and height
	maxPhotoRatio = 20
)

// checkPhoto refuses files that Telegram cannot show as a photo.
func checkPhoto(data []byte) error {
	width, height, ok := dimensions(data)
	switch {
	case !ok:
		return badRequest("IMAGE_PROCESS_FAILED")
	case width == 0 || height == 0, width+height > maxPhotoSum, max(width, height) > maxPhotoRatio*min(width, height):
		return badRequest("PHOTO_INVALID_DIMENSIONS")
	}
	return nil
}

// dimensions are those of a picture, in pixels. It is not ok if the picture is cut off, or of another format.
func dimensions(data []byte) (width, height int, ok bool) {
	if width, height, ok = webp(data); ok {
		return width, height, true
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return 0, 0, false
	}
	if config.Width+config.Height <= maxPhotoSum { // a larger one is refused anyway
		_, _, err = image.Decode(bytes.NewReader(data))
	}
	return config.Width, config.Height, err == nil
}

// webp reads the header of a WebP picture.
func webp(data []byte) (width, height int, ok bool) {
	const header = 30
	if len(data) < header || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0, false
	}
	if int(binary.LittleEndian.Uint32(data[4:]))+8 > len(data) {
		return 0, 0, false
	}
	switch string(data[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(data[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[28:]) & 0x3fff),
			true
	case "VP8L":
		bits := binary.LittleEndian.Uint32(data[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
	case "VP8X":
		size := func(at int) int { return int(data[at]) | int(data[at+1])<<8 | int(data[at+2])<<16 }
		return size(24) + 1, size(27) + 1, true
	}
	return 0, 0, false
}
