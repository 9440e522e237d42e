// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Bounds of one render, beside the limits of the manifests. A chart of five hundred objects takes a hundredth of the steps.
const (
	// mostSteps is how many nodes of templates are run, each iteration of a loop anew; reading 64 bytes counts as one.
	mostSteps = 10_000_000
	// mostDepth is how deep templates call one another.
	mostDepth = 250
	// madeShare is how many bytes functions and templates make in all, as a multiple of what the manifests may have.
	madeShare = 8
	// bytesPerStep is how much data is looked at for one step.
	bytesPerStep = 64
	// What takes longer than to go to the next node: to call a function, to begin an iteration or a template, to sort a key.
	stepsPerCall, stepsPerTurn, stepsPerKey = 4, 8, 16
)

// stopped ends a render that takes too much.
type stopped struct{ message, remedy string }

func (s *stopped) Error() string { return s.message }

var (
	errSteps = &stopped{"the templates do too much: a loop is too long, or loops within loops are", "bound what is ranged over"}
	errMade  = &stopped{"the templates make more text and data than a render may", "split the chart, or raise the controller's --limit-manifests-bytes"}
	errDepth = &stopped{"the templates call one another without an end, or too deep", "end the recursion"}
	errNest  = &stopped{"a value is nested too deep, or contains itself", "do not set a value within itself"}
)

// meter counts what a render takes. It counts, and never measures time, so that a chart is refused everywhere or nowhere.
type meter struct {
	steps, made int64 // what is left
	limits      manifest.Limits
	within      []string        // names of the templates that are being run
	asked       map[string]bool // what templates asked of the cluster: warnings
}

func newMeter(limits manifest.Limits) *meter {
	return &meter{steps: mostSteps, made: limits.TotalBytes * madeShare, limits: limits, asked: map[string]bool{}}
}

// step counts work.
func (m *meter) step(n int64) error {
	if m.steps -= n; m.steps < 0 || n < 0 {
		m.steps = 0
		return errSteps
	}
	return nil
}

// read counts bytes that are looked at.
func (m *meter) read(n int64) error { return m.step(n / bytesPerStep) }

// make counts bytes that come into being.
func (m *meter) make(n int64) error {
	if m.made -= n; m.made < 0 || n < 0 {
		m.made = 0
		return errMade
	}
	return m.read(n)
}

// times multiplies without overflow what is about to be made.
func times(a, b int64) int64 {
	const huge = 1 << 50
	if a > 0 && b > huge/a {
		return huge
	}
	return a * b
}

// enter counts a template that is being run, and its nodes.
func (m *meter) enter(nodes int, name string) (string, error) {
	if len(m.within) >= mostDepth {
		return "", errDepth
	}
	m.within = append(m.within, name)
	return "", m.step(int64(nodes))
}

func (m *meter) leave() string {
	m.within = m.within[:len(m.within)-1]
	return ""
}

// tick counts an iteration and the nodes it runs.
func (m *meter) tick(nodes int) (string, error) { return "", m.step(int64(nodes)) }

// inside is the file whose template is being run; a text that is run has none of its own.
func (m *meter) inside() string {
	for _, name := range slices.Backward(m.within) {
		if name != tplName {
			return name
		}
	}
	return ""
}

// sink gathers what a template writes.
type sink struct {
	m    *meter
	text strings.Builder
}

func (s *sink) Write(data []byte) (int, error) {
	if err := s.m.make(int64(len(data))); err != nil {
		return 0, err
	}
	return s.text.Write(data)
}

// isStopped tells whether an error is that a render takes too much.
func isStopped(err error) (*stopped, bool) {
	var s *stopped
	return s, errors.As(err, &s)
}
