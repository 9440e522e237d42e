// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager/schemas"
)

// all stands for every optional member of a type that is a structure.
const all = "*"

// unions are the structures of the built-in kinds with fields that exclude each other: groups of fields of which only one may be set. kind=Value
// stands for a value of a field that excludes the other fields of the group. TestF46EveryUnionIsInTheTable finds a type that is missing here.
var unions = map[string][][]string{
	"admissionregistration/v1.Mutation":             {{"applyConfiguration", "jsonPatch"}},
	"admissionregistration/v1.ParamRef":             {{"name", "selector"}},
	"admissionregistration/v1.WebhookClientConfig":  {{"service", "url"}},
	"apps/v1.DaemonSetUpdateStrategy":               {{"type=OnDelete", "rollingUpdate"}},
	"apps/v1.DeploymentStrategy":                    {{"type=Recreate", "rollingUpdate"}},
	"apps/v1.StatefulSetUpdateStrategy":             {{"type=OnDelete", "rollingUpdate"}},
	"autoscaling/v2.MetricSpec":                     {{all}},
	"autoscaling/v2.MetricTarget":                   {{"averageUtilization", "averageValue", "value"}},
	"batch/v1.JobSpec":                              {{"completionMode=NonIndexed", "backoffLimitPerIndex"}},
	"core/v1.AppArmorProfile":                       {{"type=RuntimeDefault", "localhostProfile"}},
	"core/v1.DownwardAPIVolumeFile":                 {{"fieldRef", "resourceFieldRef"}},
	"core/v1.EnvFromSource":                         {{all}},
	"core/v1.EnvVar":                                {{"value", "valueFrom"}},
	"core/v1.EnvVarSource":                          {{all}},
	"core/v1.FlockerVolumeSource":                   {{"datasetName", "datasetUUID"}},
	"core/v1.LifecycleHandler":                      {{all}},
	"core/v1.PersistentVolumeClaimSpec":             {{"dataSource", "dataSourceRef"}},
	"core/v1.PersistentVolumeSource":                {{all}},
	"core/v1.PodResourceClaim":                      {{"resourceClaimName", "resourceClaimTemplateName"}},
	"core/v1.PodSpec":                               {{"hostPID", "shareProcessNamespace"}},
	"core/v1.ProbeHandler":                          {{all}},
	"core/v1.SeccompProfile":                        {{"type=RuntimeDefault", "localhostProfile"}},
	"core/v1.ServiceSpec":                           {{"type=ClusterIP", "loadBalancerClass"}, {"type=ClusterIP", "externalName"}, {"type=ExternalName", "clusterIP"}, {"sessionAffinity=None", "sessionAffinityConfig"}},
	"core/v1.VolumeMount":                           {{"subPath", "subPathExpr"}},
	"core/v1.VolumeProjection":                      {{all}},
	"core/v1.VolumeSource":                          {{all}},
	"flowcontrol/v1.LimitResponse":                  {{"type=Reject", "queuing"}},
	"flowcontrol/v1.PriorityLevelConfigurationSpec": {{"exempt", "limited"}},
	"flowcontrol/v1.Subject":                        {{"group", "serviceAccount", "user"}},
	"networking/v1.IngressBackend":                  {{"resource", "service"}},
	"networking/v1.IngressClassParametersReference": {{"scope=Cluster", "namespace"}},
	"networking/v1.NetworkPolicyPeer":               {{"ipBlock", "podSelector"}, {"ipBlock", "namespaceSelector"}},
	"networking/v1.ServiceBackendPort":              {{"name", "number"}},
	"policy/v1.PodDisruptionBudgetSpec":             {{"maxUnavailable", "minAvailable"}},
	"resource/v1.Device":                            {{"allNodes", "nodeName", "nodeSelector"}},
	"resource/v1.DeviceAttribute":                   {{"bool", "int", "string", "version"}},
	"resource/v1.DeviceRequest":                     {{"exactly", "firstAvailable"}},
	"resource/v1.ResourceSliceSpec":                 {{"allNodes", "nodeName", "nodeSelector", "perDeviceNodeSelection"}, {"devices", "sharedCounters"}},
}

// noUnions are types that look like unions, and why none of their fields excludes another.
var noUnions = map[string]string{
	"admissionregistration/v1.MutatingAdmissionPolicyBindingSpec":   "its fields go together",
	"admissionregistration/v1.MutatingWebhook":                      "the text is about webhooks, not fields",
	"admissionregistration/v1.ValidatingAdmissionPolicyBindingSpec": "its fields go together",
	"apps/v1.DaemonSetSpec":                                         "the text is about Pods, not fields",
	"apps/v1.RollingUpdateDaemonSet":                                "both of its fields may be set; only 0 excludes 0",
	"apps/v1.RollingUpdateDeployment":                               "both of its fields may be set; only 0 excludes 0",
	"autoscaling/v2.HorizontalPodAutoscalerBehavior":                "its fields go together",
	"coordination/v1.LeaseSpec":                                     "preferredHolder needs another field, which it does not exclude",
	"core/v1.Affinity":                                              "its fields go together",
	"core/v1.Lifecycle":                                             "its fields go together",
	"core/v1.PodAffinityTerm":                                       "matchLabelKeys need a labelSelector",
	"core/v1.PodSchedulingGroup":                                    "it has one field",
	"core/v1.PodSecurityContext":                                    "what excludes its fields is the operating system of the Pod",
	"core/v1.SecurityContext":                                       "what excludes its fields is the operating system of the Pod",
	"core/v1.TopologySpreadConstraint":                              "matchLabelKeys need a labelSelector",
	"flowcontrol/v1.FlowSchemaSpec":                                 "the text is about requests, not fields",
	"flowcontrol/v1.NonResourcePolicyRule":                          "the text is about requests, not fields",
	"flowcontrol/v1.PolicyRulesWithSubjects":                        "the text is about requests, not fields",
	"flowcontrol/v1.ResourcePolicyRule":                             "the text is about requests, not fields",
	"networking/v1.HTTPIngressPath":                                 "the text is about values of one field",
	"networking/v1.IngressRuleValue":                                "it has one field",
	"resource/v1.DeviceClassSpec":                                   "the text is about entries of a list",
	"resource/v1.DeviceConfiguration":                               "it has one field",
	"resource/v1.DeviceConstraint":                                  "it has one field",
	"resource/v1.DeviceSelector":                                    "it has one field",
	"storage/v1.CSIDriverSpec":                                      "a field needs another, which it does not exclude",
	"storage/v1.VolumeAttachmentSource":                             "the attacher of the control plane writes it",
}

// exclusive finds documentation that says that fields exclude each other.
var exclusive = regexp.MustCompile(`(?i)(one and only one|only one of|exactly one|at most one|one of the following|one of its members|mutually exclusive|` +
	`(must not|may not|cannot|should not) be (set|specified|used) (if|when|with)|can'?not both|must be (unset|nil)|(may )?only be (set|specified) (if|when)|present only if|if and only if)`)

// place is where a type is in the objects of a kind.
type place struct {
	kind schema.GroupVersionKind
	path []step
}

type step struct {
	field string
	item  reflect.Type // of a list or, with a key, of a mapping; nil: it is a field
	keyed bool
	merge string // the field that identifies an item of the list; empty: its items are not merged
}

// walkTypes visits the structures in the specs of all stable built-in kinds, each once for each kind and type.
func walkTypes(visit func(name string, at reflect.Type, where place)) {
	for kind, at := range scheme.Scheme.AllKnownTypes() {
		_, isObject := at.FieldByName("ObjectMeta")
		if strings.Contains(kind.Version, "alpha") || strings.Contains(kind.Version, "beta") || !isObject || !strings.HasPrefix(at.PkgPath(), "k8s.io/api/") ||
			kind.Group == "authorization.k8s.io" || kind.Group == "authentication.k8s.io" || kind.Kind == "Node" {
			continue
		}
		w := walker{seen: map[reflect.Type]bool{}, visit: visit, kind: kind}
		w.structure(at, nil)
	}
}

type walker struct {
	seen  map[reflect.Type]bool
	visit func(string, reflect.Type, place)
	kind  schema.GroupVersionKind
}

func (w walker) structure(at reflect.Type, path []step) {
	if at.Kind() != reflect.Struct || w.seen[at] || !strings.HasPrefix(at.PkgPath(), "k8s.io/api/") || strings.HasSuffix(at.Name(), "Status") {
		return
	}
	w.seen[at] = true
	w.visit(strings.TrimPrefix(at.PkgPath(), "k8s.io/api/")+"."+at.Name(), at, place{w.kind, path})
	for i := range at.NumField() {
		name := nameOf(at.Field(i))
		below := path
		if name != "" {
			below = append(slices.Clone(path), step{field: name})
		}
		inner := bare(at.Field(i).Type)
		if inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			item := bare(inner.Elem())
			if below = append(slices.Clone(below), step{item: item, keyed: inner.Kind() == reflect.Map, merge: at.Field(i).Tag.Get("patchMergeKey")}); item.Kind() == reflect.Struct {
				w.structure(item, below)
			}
			continue
		}
		w.structure(inner, below)
	}
}

func bare(at reflect.Type) reflect.Type {
	for at.Kind() == reflect.Pointer {
		at = at.Elem()
	}
	return at
}

// nameOf is the name of a field in JSON; empty for one that is inlined.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// reasons are why a type may be a union: by its documentation, or because it consists of optional structures, or of one and a type.
func reasons(at reflect.Type) []string {
	var found []string
	if d, ok := reflect.New(at).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		for name, text := range d.SwaggerDoc() {
			if match := exclusive.FindString(text); match != "" {
				found = append(found, name+": "+match)
			}
		}
	}
	members, others, discriminated := optional(at), at.NumField(), false
	for i := range at.NumField() {
		discriminated = discriminated || nameOf(at.Field(i)) == "type"
	}
	if others -= len(members); len(members) >= 2 && others <= 2 {
		found = append(found, "optional structures")
	}
	if discriminated && len(members) == 1 && others == 1 {
		found = append(found, "a type with a structure")
	}
	slices.Sort(found)
	return found
}

// optional are the members of a type that are optional structures.
func optional(at reflect.Type) []string {
	var names []string
	for i := range at.NumField() {
		f := at.Field(i)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && f.Type.Elem() != reflect.TypeFor[resource.Quantity]() && f.Type.Elem() != reflect.TypeFor[metav1.Time]() {
			names = append(names, nameOf(f))
		}
	}
	return names
}

// The table above has every type of the built-in kinds that may be a union.
func TestF46EveryUnionIsInTheTable(t *testing.T) {
	visited := map[string]bool{}
	walkTypes(func(name string, at reflect.Type, where place) {
		why, listed, excused := reasons(at), unions[name] != nil, noUnions[name] != ""
		switch {
		case visited[name]:
		case listed && excused:
			t.Errorf("%s is in both tables", name)
		case len(why) > 0 && !listed && !excused:
			t.Errorf("%s, as in %s%s, may be a union (%s): add it to unions, or to noUnions with a reason", name, where.kind.Kind, textOf(where.path), strings.Join(why, "; "))
		case len(why) == 0 && excused:
			t.Errorf("%s is in noUnions needlessly", name)
		}
		visited[name] = true
	})
	for _, name := range slices.Concat(slices.Collect(maps.Keys(unions)), slices.Collect(maps.Keys(noUnions))) {
		if !visited[name] {
			t.Errorf("%s is in no kind", name)
		}
	}
}

// member is one way to fill a union.
type member struct {
	name   string
	fields map[string]any
}

// membersOf are the ways to fill a group of fields.
func membersOf(at reflect.Type, group []string) []member {
	if group[0] == all {
		group = optional(at)
	}
	var members []member
	for _, text := range group {
		name, value, isValue := strings.Cut(text, "=")
		if isValue {
			members = append(members, member{text, map[string]any{name: value}})
			continue
		}
		for i := range at.NumField() {
			if nameOf(at.Field(i)) == name {
				members = append(members, member{text, map[string]any{name: sample(at.Field(i).Type, 0)}})
			}
		}
	}
	return members
}

// sample is a value of a type with its required fields; a number or a string is not the zero value.
func sample(at reflect.Type, depth int) any {
	at = bare(at)
	switch at {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return "1"
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return "2026-01-01T00:00:00Z"
	}
	switch at.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		for i := range at.NumField() {
			f := at.Field(i)
			required := !strings.Contains(f.Tag.Get("json"), "omitempty") && !strings.Contains(f.Tag.Get("json"), "omitzero")
			if name := nameOf(f); name != "" && (required || name == "name") && depth < 4 {
				fields[name] = sample(f.Type, depth+1)
			}
		}
		return fields
	case reflect.Slice:
		if at.Elem().Kind() == reflect.Uint8 {
			return "YQ=="
		}
		return []any{sample(at.Elem(), depth+1)}
	case reflect.Map:
		return map[string]any{"a": sample(at.Elem(), depth+1)}
	case reflect.Bool:
		return true
	case reflect.String:
		return "a"
	}
	return int64(1)
}

// textOf is a path as the API server writes it in an answer.
func textOf(path []step) string {
	var text strings.Builder
	for _, s := range path {
		switch {
		case s.keyed:
			text.WriteString("[a]")
		case s.item != nil:
			text.WriteString("[0]")
		default:
			text.WriteString("." + s.field)
		}
	}
	return text.String()
}

// object is an object of a kind with some fields at a place. Items of lists have their required fields.
func (p place) object(fields map[string]any) *unstructured.Unstructured {
	given := map[string]any{}
	maps.Copy(given, fields)
	var value any = given
	for i := len(p.path) - 1; i >= 0; i-- {
		s := p.path[i]
		if s.item == nil {
			value = map[string]any{s.field: value}
			continue
		}
		item, _ := value.(map[string]any)
		if required, isMap := sample(s.item, 0).(map[string]any); isMap && !s.keyed {
			for name, content := range required {
				if _, set := item[name]; !set && isScalar(content) && !isMember(s.item, name) {
					item[name] = content
				}
			}
		}
		if value = []any{value}; s.keyed {
			value = map[string]any{"a": item}
		}
	}
	content, _ := value.(map[string]any)
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(p.kind)
	object.SetName("a")
	return object
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// isMember tells whether a field of a type is one that excludes others.
func isMember(at reflect.Type, name string) bool {
	for _, group := range unions[strings.TrimPrefix(at.PkgPath(), "k8s.io/api/")+"."+at.Name()] {
		if slices.Contains(group, name) {
			return true
		}
	}
	return false
}

// at is what an object has at the place.
func (p place) at(content map[string]any) map[string]any {
	var value any = content
	for _, s := range p.path {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[cmp.Or(s.field, "a")]
		case []any:
			if len(parent) != 1 {
				return nil
			}
			value = parent[0]
		}
	}
	fields, _ := value.(map[string]any)
	return fields
}

// managersOf are the kinds of managers of a field that is in the way.
var managersOf = map[string]metav1.ManagedFieldsOperationType{
	"updates": metav1.ManagedFieldsOperationUpdate, "applies": metav1.ManagedFieldsOperationApply, "none, it is a default": "",
}

// flux-f19: in every union of the built-in kinds, in every place of a kind where it is found first, and for each kind of manager: what another manager
// set is found, and what the bundle sets is all that is left. The removal is computed here, without an API server.
func TestF46EveryUnion(t *testing.T) {
	count := map[bool]int{}
	walkTypes(func(name string, at reflect.Type, where place) {
		for _, group := range unions[name] {
			members := membersOf(at, group)
			if len(members) < 2 {
				t.Errorf("%s: %v has fewer than two members", name, group)
			}
			for i, wanted := range members {
				other := members[(i+1)%len(members)]
				if strings.Contains(other.name, "=") {
					continue // a value of a field that the bundle does not set
				}
				for kind, operation := range managersOf {
					count[merges(where.path)]++
					if got := remaining(t, where, wanted, other, operation); got != "" {
						t.Errorf("%s%s: the bundle sets %s, a manager that %s has set %s: %s", where.kind.Kind, textOf(where.path), wanted.name, kind, other.name, got)
					}
				}
			}
		}
	})
	t.Logf("%d cases in structures that are merged, %d in lists that are replaced as a whole", count[true], count[false])
	if count[true] < 1000 {
		t.Errorf("only %d cases", count[true])
	}
}

// merges tells whether the fields at a path are merged with those of other managers.
func merges(path []step) bool {
	return !slices.ContainsFunc(path, func(s step) bool { return s.item != nil && !s.keyed && s.merge == "" })
}

// Kinds that client-go has no types of: their fields are compared without a schema.
func TestF46UnionsOfOtherKinds(t *testing.T) {
	service := schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
	crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	for name, tc := range map[string]struct {
		where place
		group [2]map[string]any
	}{
		"APIService": {place{service, []step{{field: "spec"}}}, [2]map[string]any{{"caBundle": "YQ=="}, {"insecureSkipTLSVerify": true}}},
		"conversion": {place{crd, []step{{field: "spec"}, {field: "conversion"}}}, [2]map[string]any{{"strategy": "None"}, {"webhook": map[string]any{"conversionReviewVersions": []any{"v1"}}}}},
		"custom":     {place{schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, []step{{field: "spec"}, {field: "source"}}}, [2]map[string]any{{"git": map[string]any{"url": "a"}}, {"image": "b"}}},
	} {
		for kind, operation := range managersOf {
			for other := range tc.group[1] {
				if got := remaining(t, tc.where, member{name, tc.group[0]}, member{other, tc.group[1]}, operation); got != "" {
					t.Errorf("%s, a manager that %s: %s", name, kind, got)
				}
			}
		}
	}
}

// uniqueName is in the documentation of a name that no two items of a list may have.
var uniqueName = regexp.MustCompile(`unique names?\b`)

// flux-f16: in every list of the built-in kinds with items that are identified by another field and have unique names, an item of another manager with the name
// of one of the bundle gives way.
func TestF46EveryNamedItem(t *testing.T) {
	found := map[string]bool{}
	walkTypes(func(name string, at reflect.Type, where place) {
		d, ok := reflect.New(at).Interface().(interface{ SwaggerDoc() map[string]string })
		last := step{}
		if len(where.path) > 0 {
			last = where.path[len(where.path)-1]
		}
		if !ok || last.merge == "" || last.merge == "name" || !uniqueName.MatchString(d.SwaggerDoc()["name"]) {
			return
		}
		found[name] = true
		ours := member{"name", map[string]any{"name": "http", last.merge: int64(80)}}
		theirs := member{"name", map[string]any{"name": "http", last.merge: int64(8080)}}
		for kind, operation := range managersOf {
			desired, live := where.object(ours.fields), where.object(theirs.fields)
			merged := mergedWith(t, where, live, desired, where.object(nil), operation)
			refused := invalid(where, strings.TrimPrefix(textOf(where.path), ".")+".name")
			given := false
			for _, suspects := range merged.Suspects(refused) {
				content, err := merged.Without(suspects)
				if err != nil {
					t.Fatal(err)
				}
				given = given || where.at(content) != nil && where.at(content)[last.merge] == int64(80)
			}
			if !given {
				t.Errorf("%s%s: the item of a manager that %s stays", where.kind.Kind, textOf(where.path), kind)
			}
		}
	})
	if want := []string{"core/v1.ContainerPort", "core/v1.ServicePort"}; !slices.Equal(slices.Sorted(maps.Keys(found)), want) {
		t.Errorf("lists of named items: %v, want %v", slices.Sorted(maps.Keys(found)), want)
	}
}

const bundles, clients = "satchel/shop/web", "another-client"

// mergedWith merges the desired object with the live one, of which another manager, or none, owns what base does not have.
func mergedWith(t *testing.T, where place, live, desired, base *unstructured.Unstructured, operation metav1.ManagedFieldsOperationType) *Merged {
	t.Helper()
	sets := map[*unstructured.Unstructured]*fieldpath.Set{}
	for _, object := range []*unstructured.Unstructured{base, live} {
		typed, err := schemas.Typed(object)
		if err != nil {
			t.Fatalf("%s%s: %v", where.kind, textOf(where.path), err)
		}
		if sets[object], err = typed.ToFieldSet(); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, set *fieldpath.Set) metav1.ManagedFieldsEntry {
		raw, err := fieldsV1(set)
		if err != nil {
			t.Fatal(err)
		}
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: where.kind.GroupVersion().String(), FieldsType: "FieldsV1", FieldsV1: raw}
	}
	entries := []metav1.ManagedFieldsEntry{entry(bundles, metav1.ManagedFieldsOperationApply, sets[base])}
	if operation != "" {
		entries = append(entries, entry(clients, operation, sets[live].Difference(sets[base])))
	}
	live.SetManagedFields(entries)
	merged, err := Merge(live, desired, bundles)
	if err != nil {
		t.Fatal(err)
	}
	return merged
}

func invalid(where place, path string) error {
	return apierrors.NewInvalid(where.kind.GroupKind(), "a", field.ErrorList{field.Forbidden(field.NewPath(path), "excludes another field")})
}

// remaining says what is wrong with the object after the other member gave way; nothing if only the wanted one is left.
func remaining(t *testing.T, where place, wanted, other member, operation metav1.ManagedFieldsOperationType) string {
	t.Helper()
	merged := mergedWith(t, where, where.object(other.fields), where.object(wanted.fields), where.object(nil), operation)
	var last map[string]any
	for _, suspects := range append(merged.Suspects(invalid(where, strings.TrimPrefix(textOf(where.path), "."))), nil) {
		content, err := merged.Without(suspects)
		if err != nil {
			t.Fatal(err)
		}
		last = where.at(content)
		if _, stays := last[other.name]; stays {
			continue
		}
		for name, value := range wanted.fields {
			if fmt.Sprint(last[name]) != fmt.Sprint(value) {
				return fmt.Sprintf("it has %v", last)
			}
		}
		taken, err := merged.TakeOver(suspects)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range taken {
			if len(suspects) > 0 && entry.Manager == clients && hasBelow(readable(entry), suspects[0].path) {
				return "the other manager keeps " + entry.FieldsV1.GetRawString()
			}
		}
		return ""
	}
	return fmt.Sprintf("it has %v", last)
}
