// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// shape is what Kubernetes wants a value to be; nil where that is not known, as in custom resources.
type shape struct{ of reflect.Type }

// types are those of the kinds that Kubernetes serves.
var types = sync.OnceValue(func() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	} {
		utilruntime.Must(add(all)) // it only fails for two types of one kind: a mistake in this list
	}
	return all
})

func shapeOf(kind schema.GroupVersionKind) *shape {
	if of, known := types().AllKnownTypes()[kind]; known {
		return &shape{of}
	}
	return nil
}

// fieldOf is the shape of a field at the top of an object; what all objects have is known of all.
func (s *shape) fieldOf(name string) *shape {
	switch name {
	case "metadata":
		return &shape{reflect.TypeFor[metav1.ObjectMeta]()}
	case "apiVersion", "kind":
		return &shape{reflect.TypeFor[string]()}
	}
	return s.field(name)
}

var intOrString = reflect.TypeFor[intstr.IntOrString]()

// field is the shape of a field of a mapping.
func (s *shape) field(name string) *shape {
	if s == nil {
		return nil
	}
	switch s.of.Kind() { //nolint:exhaustive // nothing else has fields
	case reflect.Map:
		return shapeOfType(s.of.Elem())
	case reflect.Struct:
		if of := fieldNamed(s.of, name); of != nil {
			return shapeOfType(of)
		}
	}
	return nil
}

// item is the shape of the items of a list.
func (s *shape) item() *shape {
	if s == nil || s.of.Kind() != reflect.Slice {
		return nil
	}
	return shapeOfType(s.of.Elem())
}

func shapeOfType(of reflect.Type) *shape {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return &shape{of}
}

// fieldNamed is the type of the field that has a name in JSON, also of one that is inline.
func fieldNamed(of reflect.Type, name string) reflect.Type {
	for i := range of.NumField() {
		field := of.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name {
			return field.Type
		}
		if tag == "" && field.Anonymous && field.Type.Kind() == reflect.Struct {
			if found := fieldNamed(field.Type, name); found != nil {
				return found
			}
		}
	}
	return nil
}

// read makes of a text what the shape wants, and says what that is where the text is none. Where nothing is known of the
// field, and the text was one variable and nothing else, it is what YAML makes of it without quotation marks.
func (s *shape) read(text string, whole bool) (value any, wanted string) {
	switch {
	case s == nil && whole:
		return untyped(text), ""
	case s == nil:
		return text, ""
	case s.of == intOrString:
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			return n, ""
		}
		return text, ""
	}
	switch s.of.Kind() { //nolint:exhaustive // everything else is written as a text
	case reflect.Bool:
		if text == "true" || text == "false" {
			return text == "true", ""
		}
		return text, "true or false"
	case reflect.Int32, reflect.Int64, reflect.Int:
		if n, err := strconv.ParseInt(text, 10, s.of.Bits()); err == nil {
			return n, ""
		}
		return text, "a whole number"
	}
	return text, ""
}

// number matches what may be a number of YAML and JSON; only what prints back unchanged is made one.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?$`)

// untyped reads a text as YAML reads a value: one between double quotation marks is a text, whatever it looks like. Only what
// prints back unchanged becomes a number, so that no value changes: 2.40, 1.0, +5, 007 and 1e3 stay texts, as do numbers that
// no number of JSON holds exactly.
func untyped(text string) any {
	switch {
	case text == "true" || text == "false":
		return text == "true"
	case number.MatchString(text):
		return numberOf(text)
	case len(text) >= 2 && text[0] == '"' && strings.Count(text, `"`) == 2 && text[len(text)-1] == '"' && !strings.Contains(text, `\`):
		return text[1 : len(text)-1]
	}
	return text
}

// numberOf is the number that prints back as the text; otherwise the text.
func numberOf(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f == math.Trunc(f) {
		return text // a whole number that is written as a decimal, or that is too large
	}
	if printed, err := json.Marshal(f); err == nil && string(printed) == text {
		return f
	}
	return text
}
