// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Age is how long ago something was, as kubectl writes it.
func Age(now time.Time, then metav1.Time) string {
	if then.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(then.Time))
}

// Short is a duration without empty parts: 10m instead of 10m0s.
func Short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
