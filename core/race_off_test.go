//go:build !race

package core

const RaceDetector = false
