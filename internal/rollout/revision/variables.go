// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Cluster is what is known of a cluster from where it is listed.
type Cluster struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	// UID and Created are of the Cluster of Cluster API, or the ClusterProfile, that stands for it; empty where it comes from elsewhere.
	UID     types.UID
	Created time.Time
	// Unhealthy tells that its ClusterProfile says so of its control plane.
	Unhealthy bool
	// KubeConfig is nil for the cluster of the rollout itself.
	KubeConfig *v1alpha1.ClusterReference
	// RemoteServiceAccountName is used instead of that of the template.
	RemoteServiceAccountName string
}

// IsReachedBy tells whether a BundleDeployment has the kubeconfig of the cluster.
func (c Cluster) IsReachedBy(live *v1alpha1.BundleDeployment) bool {
	return equality.Semantic.DeepEqual(effective.RemoteCluster(live.Spec.Target.ClusterReference), c.KubeConfig)
}

// clusterVariable is the name of the variable that every rollout has.
const clusterVariable = "cluster"

// MaxValueBytes bounds the value of a variable.
const MaxValueBytes = 4 << 10

// values are the values of the variables for a cluster. One that has neither a value nor a default is missing.
func values(variables []v1alpha1.RolloutVariable, cluster *Cluster) (map[string]string, error) {
	found := map[string]string{clusterVariable: cluster.Name}
	for i := range variables {
		value, has := valueOf(&variables[i], cluster)
		if len(value) > MaxValueBytes {
			return nil, &SizeError{fmt.Errorf("the value of the variable %s has more than %d bytes: shorten the label or annotation that it is read from, or use a ConfigMap with $(cluster) in its name in spec.template.spec.processors[].variables.valuesFrom", variables[i].Name, MaxValueBytes)}
		}
		if has {
			found[variables[i].Name] = value
		}
	}
	return found, nil
}

func valueOf(variable *v1alpha1.RolloutVariable, cluster *Cluster) (string, bool) {
	var value string
	var has bool
	switch {
	case variable.Value != nil:
		return *variable.Value, true
	case variable.Label != "":
		value, has = cluster.Labels[variable.Label]
	case variable.Annotation != "":
		value, has = cluster.Annotations[variable.Annotation]
	}
	if !has && variable.Default != nil {
		return *variable.Default, true
	}
	return value, has
}

// reference is a variable in a text, or one that is escaped.
var reference = regexp.MustCompile(`\$?\$\(([_a-zA-Z][_a-zA-Z0-9]*)\)`)

// hasVariable tells whether a text has a variable.
func hasVariable(text string) bool {
	for {
		at := reference.FindStringIndex(text)
		if at == nil {
			return false
		}
		if !strings.HasPrefix(text[at[0]:], "$$") {
			return true
		}
		text = text[at[1]:]
	}
}

// MaxSpecBytes bounds the spec of a BundleDeployment with all variables replaced.
const MaxSpecBytes = 256 << 10

// SizeError says that a spec, or a value in it, is larger than permitted.
type SizeError struct{ error }

// Unwrap returns the cause.
func (e *SizeError) Unwrap() error { return e.error }

// room is what may still be written into a spec, in bytes. It is counted before each value is written.
type room int

func (r *room) take(bytes int) error {
	if *r -= room(bytes); *r < 0 {
		return &SizeError{fmt.Errorf("the spec of the BundleDeployment has more than %d bytes with its variables replaced: use shorter values, or fewer references to them", MaxSpecBytes)}
	}
	return nil
}

// expand replaces $(name) by values, once, and $$(name) by $(name). A variable without a value is an error, and so is what has no room.
func expand(text string, left *room, values func(name string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		at := reference.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		value, has := text[at[0]+1:at[1]], true
		if !strings.HasPrefix(text[at[0]:], "$$") {
			value, has = values(text[at[2]:at[3]])
		}
		if !has {
			return "", fmt.Errorf("the variable %.63s has no value: give the cluster the label or annotation that it is read from, or the variable a default", text[at[2]:at[3]])
		}
		if err := left.take(len(value)); err != nil {
			return "", err
		}
		out.WriteString(text[:at[0]])
		out.WriteString(value)
		text = text[at[1]:]
	}
	if out.Len() == 0 {
		return text, nil
	}
	out.WriteString(text)
	return out.String(), nil
}
