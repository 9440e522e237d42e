// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	upstream "github.com/operator-framework/api/pkg/validation/errors"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// suite is a validator of operator-framework/api.
type suite struct {
	rule      string
	validator validator.Validator
	subjects  func(*tree) []subject
	remedy    string // where no advice fits
	// advice makes warnings of the suite's errors: they are about how a catalog presents the bundle.
	advice bool
}

// suites that run. Left out are MultipleArchitectures, which starts docker; Community and OperatorHub, which upstream has
// replaced; PackageManifest and OperatorGroup, which are about objects that no bundle contains.
var suites = []suite{
	{rule: "olm-csv", validator: validation.ClusterServiceVersionValidator, subjects: (*tree).theCSV, remedy: "correct the ClusterServiceVersion"},
	{rule: "olm-crd", validator: validation.CustomResourceDefinitionValidator, subjects: (*tree).allCRDs, remedy: "correct it: the API server would refuse it"},
	{rule: "olm-bundle", validator: validation.BundleValidator, subjects: (*tree).theBundle, remedy: "correct the bundle"},
	{rule: "olm-object", validator: validation.ObjectValidator, subjects: (*tree).allOthers, remedy: "correct the object"},
	{rule: "olm-removed-api", validator: validation.AlphaDeprecatedAPIsValidator, subjects: (*tree).theBundle, remedy: "use versions that the clusters still serve"},
	{rule: "good-practice", validator: validation.GoodPracticesValidator, subjects: (*tree).theBundle, remedy: "consider it", advice: true},
	{rule: "operatorhub", validator: validation.OperatorHubV2Validator, subjects: (*tree).theBundle, remedy: forCatalogs, advice: true},
	{rule: "operatorhub-capability", validator: validation.StandardCapabilitiesValidator, subjects: (*tree).theBundle, remedy: forCatalogs, advice: true},
	{rule: "operatorhub-category", validator: validation.StandardCategoriesValidator, subjects: (*tree).theBundle, remedy: forCatalogs, advice: true},
}

const forCatalogs = "correct it before the bundle is offered on operatorhub.io"

// subject is the input of a suite, and where it was read. Suites modify their input, so each gets its own.
type subject struct {
	at    manifest.Manifest
	value any
}

func (t *tree) theCSV() []subject {
	return []subject{{at: t.csv, value: t.bundle.CSV.DeepCopy()}}
}

func (t *tree) theBundle() []subject {
	b := *t.bundle
	b.CSV = b.CSV.DeepCopy()
	return []subject{{at: t.csv, value: &b}}
}

func (t *tree) allCRDs() []subject {
	subjects := make([]subject, 0, len(t.crds))
	for _, d := range t.crds {
		subjects = append(subjects, subject{at: d.Manifest, value: d.typed.DeepCopy()})
	}
	return subjects
}

func (t *tree) allOthers() []subject {
	subjects := make([]subject, 0, len(t.others))
	for _, m := range t.others {
		subjects = append(subjects, subject{at: m, value: m.Object})
	}
	return subjects
}

// examine runs the suites.
func (t *tree) examine() []finding {
	var found []finding
	for _, s := range suites {
		for _, on := range s.subjects(t) {
			for _, e := range run(s, on) {
				if len(found) == mostFindings {
					return append(found, finding{Problem: Problem{Severity: Warning, Rule: s.rule, Message: tooMany, Remedy: "correct those that are listed first"}})
				}
				found = append(found, t.finding(s, on, e))
			}
		}
	}
	return found
}

// run runs one suite on one subject. A suite that panics is reported as crashed; the others continue.
func run(s suite, on subject) (found []upstream.Error) {
	defer func() {
		if crash := recover(); crash != nil {
			found = append(found, upstream.NewWarn("Crashed", crashed, "", nil))
		}
	}()
	for _, result := range s.validator.Validate(on.value) {
		found = append(append(found, result.Errors...), result.Warnings...)
	}
	if len(found) > mostOfSuite {
		more := len(found) - mostOfSuite
		found = append(found[:mostOfSuite:mostOfSuite], upstream.NewWarn("TooMany", fmt.Sprintf("there are %d more findings of this suite", more), "", nil))
	}
	return found
}

const (
	mostOfSuite  = 100
	mostFindings = 1000
	tooMany      = "there are more findings than are listed"
	crashed      = "the suite crashed on this object, so its checks are incomplete"
)

// finding is what a suite found, with what it is about.
type finding struct {
	Problem

	advice advice
	kind   string // the CustomResourceDefinition it is about; empty where that is not said
}

// finding translates a finding of upstream.
func (t *tree) finding(s suite, on subject, e upstream.Error) finding {
	f := finding{Problem: Problem{Severity: Warning, Rule: s.rule, Message: message(e)}}
	if e.Level == upstream.LevelError && !s.advice {
		f.Severity = Error
	}
	at := on.at
	if kind, ok := e.BadValue.(schema.GroupVersionKind); ok {
		f.kind = t.nameOf(kind)
	}
	if name, ok := e.BadValue.(string); ok {
		at = t.accountNamed(name, at, f.Message)
	}
	f.File = at.File
	f.Document = at.Document
	f.Object = manifest.Describe(at.Object)
	f.Remedy = s.remedy
	advise(&f)
	if kind, ok := e.BadValue.(schema.GroupVersionKind); ok {
		f.Message += ": " + kind.Kind + " of " + kind.GroupVersion().String()
	}
	return f
}

// nameOf is the name of the owned CustomResourceDefinition of a kind.
func (t *tree) nameOf(kind schema.GroupVersionKind) string {
	owned := t.bundle.CSV.Spec.CustomResourceDefinitions.Owned
	at := slices.IndexFunc(owned, func(d v1alpha1.CRDDescription) bool {
		_, group, _ := strings.Cut(d.Name, ".")
		return d.Kind == kind.Kind && group == kind.Group
	})
	if at < 0 {
		return kind.Kind
	}
	return owned[at].Name
}

// accountNamed is the ServiceAccount that a message is about, or otherwise if it is about none.
func (t *tree) accountNamed(name string, otherwise manifest.Manifest, text string) manifest.Manifest {
	if !strings.Contains(text, "service account") {
		return otherwise
	}
	for _, m := range t.others {
		if m.Object.GetKind() == "ServiceAccount" && m.Object.GetName() == name {
			return m
		}
	}
	return otherwise
}

// longestMessage bounds a message, in bytes: upstream quotes invalid values.
const longestMessage = 400

// withoutValue is the detail, and where that is the text of a field's error, without the value in it: that may be as long
// as all versions of a CustomResourceDefinition.
func withoutValue(e upstream.Error) string {
	begin := (&field.Error{Type: field.ErrorType(e.Type), Field: e.Field, BadValue: e.BadValue}).Error()
	if detail, found := strings.CutPrefix(e.Detail, begin+": "); found && e.Field != "" {
		return e.Field + ": " + detail
	}
	return e.Detail
}

// message is what upstream says, in one line, with what a parser said that it quotes.
func message(e upstream.Error) string {
	text := withoutValue(e)
	if err, ok := e.BadValue.(error); ok {
		text += ": " + err.Error()
	}
	if e.Field != "" && !strings.Contains(text, e.Field) {
		text = e.Field + ": " + text
	}
	if strings.HasPrefix(text, "(") {
		if _, after, found := strings.Cut(text, ") "); found {
			text = after
		}
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "") + "…"
	}
	return text
}
