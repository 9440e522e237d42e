// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// targetNamespaces decides what is watched (rules N):
//
//	watch namespaces   modes                            watched
//	none               All                              all
//	none               Own, not Single                  the install namespace, the one legal value
//	none               Single or Multi                  refused: one must be chosen
//	""                 All                              all
//	one, = install     Own                              it
//	one, other         Single or Multi                  it
//	several            Multi; Own if install is in it   them
//
// The result is sorted and without repetitions.
func targetNamespaces(b *bundle.Bundle, o Options) ([]string, []manifest.Problem) {
	m := b.SupportedModes()
	targets := slices.Compact(slices.Sorted(slices.Values(o.WatchNamespaces)))
	if m == (bundle.Modes{}) {
		return nil, nil // the validator of C4 says why no choice would do
	}
	if len(targets) == 0 {
		return defaultTargets(b, o, m)
	}
	refuse := func(remedy, message string, args ...any) ([]string, []manifest.Problem) {
		return nil, []manifest.Problem{b.Problem("N2", remedy, message+" (supported install modes: "+m.String()+")", args...)}
	}
	if slices.Equal(targets, []string{""}) {
		if m.All {
			return targets, nil
		}
		return refuse("name what it watches in watchNamespaces", "the operator cannot watch all namespaces")
	}
	for _, name := range targets {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return refuse("correct watchNamespaces", "%q is not a valid name of a namespace to watch", name)
		}
	}
	if message, remedy := against(m, targets, o.InstallNamespace); message != "" {
		return refuse(remedy, "%s", message)
	}
	return targets, nil
}

func defaultTargets(b *bundle.Bundle, o Options, m bundle.Modes) ([]string, []manifest.Problem) {
	switch {
	case m.All:
		return []string{""}, nil
	case m.Own && !m.Single:
		return []string{o.InstallNamespace}, nil
	}
	remedy := "name it in watchNamespaces"
	if m.Own {
		remedy = fmt.Sprintf("to watch the namespace it is installed in, which it supports, set spec.registryV1.watchNamespaces: [%s]; or name another one there", o.InstallNamespace)
	}
	return nil, []manifest.Problem{b.Problem("N2", remedy,
		"the operator cannot watch all namespaces, so what it watches must be chosen (supported install modes: %s)", m)}
}

// against says why the modes do not allow the targets, which are valid names, sorted; empty: they do.
func against(m bundle.Modes, targets []string, install string) (message, remedy string) {
	switch withInstall := slices.Contains(targets, install); {
	case m.All && !m.Own && !m.Single && !m.Multi:
		return "the operator always watches all namespaces", "leave watchNamespaces empty"
	case len(targets) > 1 && !m.Multi:
		return fmt.Sprintf("the operator cannot watch %d namespaces", len(targets)), "name one namespace in watchNamespaces"
	case withInstall && !m.Own:
		return fmt.Sprintf("the operator cannot watch %q, the namespace it is installed in", install), "watch or install in another namespace"
	case !withInstall && !m.Single && !m.Multi:
		return fmt.Sprintf("the operator cannot watch the single namespace %q, which is not the one it is installed in", targets[0]),
			"watch the namespace it is installed in, or leave watchNamespaces empty if it supports AllNamespaces"
	}
	return "", ""
}
