// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"strconv"
)

// AnnotationPhase assigns an object to a phase, a whole number; the default is 0. The
// objects of a phase are applied when those of all lower ones are applied and healthy, and
// deleted when those of all higher ones are gone, as far as deleteOrder allows.
const AnnotationPhase = "satchel.dev/phase"

// FarthestPhase limits the numbers of phases on both sides of 0.
const FarthestPhase = 1000

// phaseIn is the phase in the annotations of a live object; 0 when it is invalid, as an object
// with an invalid phase is never applied.
func phaseIn(annotations map[string]string) int {
	phase, err := ReadPhase(annotations)
	if err != nil {
		return 0
	}
	return phase
}

// ReadPhase reads the annotation that sets the phase of an object; 0 without it.
func ReadPhase(annotations map[string]string) (int, error) {
	text, given := annotations[AnnotationPhase]
	if !given {
		return 0, nil
	}
	phase, err := strconv.Atoi(text)
	if err != nil || phase < -FarthestPhase || phase > FarthestPhase {
		return 0, fmt.Errorf("the annotation %s is %q: write a whole number from -%d to %d", AnnotationPhase, text, FarthestPhase, FarthestPhase)
	}
	return phase, nil
}
