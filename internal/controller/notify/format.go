// SPDX-License-Identifier: Apache-2.0

package notify

import "fmt"

// Format is how events are posted.
type Format string

// Formats of posts.
const (
	// Flux is the format of Flux's notification controller.
	Flux Format = "flux"
	// CloudEvents is CloudEvents 1.0: structured JSON over HTTP.
	CloudEvents Format = "cloudevents"
)

// encoder is the encoder of a format.
func (f Format) encoder() (encoder, error) {
	switch f {
	case Flux, "":
		return inFlux, nil
	case CloudEvents:
		return inCloudEvents, nil
	}
	return nil, fmt.Errorf("--events-format is %q: it has to be %s or %s", f, Flux, CloudEvents)
}

// Set implements pflag.Value.
func (f *Format) Set(text string) error {
	if _, err := Format(text).encoder(); err != nil || text == "" {
		return fmt.Errorf("it has to be %s or %s", Flux, CloudEvents)
	}
	*f = Format(text)
	return nil
}

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (*Format) Type() string { return "string" }
