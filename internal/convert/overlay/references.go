// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// form is how a reference names its object.
type form int

const (
	byName     form = iota // a text, or texts
	byMapping              // a mapping with name, and perhaps namespace and kind
	byResource             // texts in a rule that says by resources what they are of
	byPolicy               // a mapping with name; its kind is the paramKind of the admission policy that spec.policyName names
)

// reference is a place where objects name others.
type reference struct {
	path []string
	to   schema.GroupKind
	form form
}

func at(path string) []string { return strings.Split(path, "/") }

var (
	configMap      = kindOf("", "ConfigMap")
	secret         = kindOf("", "Secret")
	service        = kindOf("", "Service")
	serviceAccount = kindOf("", "ServiceAccount")
	volumeClaim    = kindOf("", "PersistentVolumeClaim")
	volume         = kindOf("", "PersistentVolume")
	storageClass   = kindOf("storage.k8s.io", "StorageClass")
	role           = kindOf("rbac.authorization.k8s.io", "Role")
	clusterRole    = kindOf("rbac.authorization.k8s.io", "ClusterRole")
	deployment     = kindOf("apps", "Deployment")
	pod            = kindOf("", "Pod")
	priorityClass  = kindOf("scheduling.k8s.io", "PriorityClass")
	resourceClaim  = kindOf("resource.k8s.io", "ResourceClaim")
	claimTemplate  = kindOf("resource.k8s.io", "ResourceClaimTemplate")
	deviceClass    = kindOf("resource.k8s.io", "DeviceClass")
	attributes     = kindOf("storage.k8s.io", "VolumeAttributesClass")
	credentialSpec = kindOf("windows.k8s.io", "GMSACredentialSpec")

	validatingPolicy  = kindOf("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
	validatingBinding = kindOf("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding")
	mutatingPolicy    = kindOf("admissionregistration.k8s.io", "MutatingAdmissionPolicy")
	mutatingBinding   = kindOf("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding")
)

// below are references at a path below another one.
func below(path string, rules []reference) []reference {
	var all []reference
	for _, rule := range rules {
		all = append(all, reference{slices.Concat(at(path), rule.path), rule.to, rule.form})
	}
	return all
}

// claimSpec are those of the specification of a claim, which templates of claims have as well.
var claimSpec = []reference{
	{at("volumeName"), volume, byName}, {at("storageClassName"), storageClass, byName}, {at("volumeAttributesClassName"), attributes, byName},
	{at("dataSource"), volumeClaim, byMapping}, {at("dataSourceRef"), volumeClaim, byMapping},
}

// volumeSource are those of the sources of volumes that Pods and PersistentVolumes both have.
var volumeSource = []reference{
	{at("azureFile/secretName"), secret, byName}, {at("cephfs/secretRef"), secret, byMapping}, {at("cinder/secretRef"), secret, byMapping},
	{at("csi/nodePublishSecretRef"), secret, byMapping}, {at("flexVolume/secretRef"), secret, byMapping}, {at("iscsi/secretRef"), secret, byMapping},
	{at("rbd/secretRef"), secret, byMapping}, {at("scaleIO/secretRef"), secret, byMapping}, {at("storageos/secretRef"), secret, byMapping},
}

// volumeSpec are those of the specification of a PersistentVolume.
var volumeSpec = append([]reference{
	{at("storageClassName"), storageClass, byName}, {at("volumeAttributesClassName"), attributes, byName}, {at("claimRef"), volumeClaim, byMapping},
	{at("csi/controllerExpandSecretRef"), secret, byMapping}, {at("csi/controllerPublishSecretRef"), secret, byMapping},
	{at("csi/nodeExpandSecretRef"), secret, byMapping}, {at("csi/nodeStageSecretRef"), secret, byMapping},
}, volumeSource...)

// deviceRequests are those of the specification of a ResourceClaim.
var deviceRequests = []reference{
	{at("devices/requests/deviceClassName"), deviceClass, byName}, {at("devices/requests/exactly/deviceClassName"), deviceClass, byName},
	{at("devices/requests/firstAvailable/deviceClassName"), deviceClass, byName},
}

// podGroup are those of groups of Pods and of their templates.
var podGroup = []reference{
	{at("priorityClassName"), priorityClass, byName}, {at("resourceClaims/resourceClaimName"), resourceClaim, byName},
	{at("resourceClaims/resourceClaimTemplateName"), claimTemplate, byName},
}

// podSpecs are where objects hold the specification of a Pod.
var podSpecs = map[schema.GroupKind][]string{
	kindOf("", "Pod"): at("spec"), kindOf("", "PodTemplate"): at("template/spec"), kindOf("", "ReplicationController"): at("spec/template/spec"),
	deployment: at("spec/template/spec"), kindOf("apps", "ReplicaSet"): at("spec/template/spec"),
	kindOf("apps", "DaemonSet"): at("spec/template/spec"), kindOf("apps", "StatefulSet"): at("spec/template/spec"),
	kindOf("batch", "Job"): at("spec/template/spec"), kindOf("batch", "CronJob"): at("spec/jobTemplate/spec/template/spec"),
}

// podReferences are those within such a specification.
var podReferences = slices.Concat([]reference{
	{at("volumes/configMap/name"), configMap, byName}, {at("volumes/projected/sources/configMap/name"), configMap, byName},
	{at("volumes/secret/secretName"), secret, byName}, {at("volumes/projected/sources/secret/name"), secret, byName},
	{at("volumes/projected/sources/clusterTrustBundle/name"), kindOf("certificates.k8s.io", "ClusterTrustBundle"), byName},
	{at("imagePullSecrets/name"), secret, byName},
	{at("volumes/persistentVolumeClaim/claimName"), volumeClaim, byName},
	{at("serviceAccountName"), serviceAccount, byName}, {at("serviceAccount"), serviceAccount, byName},
	{at("priorityClassName"), priorityClass, byName},
	{at("runtimeClassName"), kindOf("node.k8s.io", "RuntimeClass"), byName},
	{at("resourceClaims/resourceClaimName"), resourceClaim, byName},
	{at("resourceClaims/resourceClaimTemplateName"), claimTemplate, byName},
	{at("schedulingGroup/podGroupName"), kindOf("scheduling.k8s.io", "PodGroup"), byName},
	{at("securityContext/windowsOptions/gmsaCredentialSpecName"), credentialSpec, byName},
}, below("volumes", volumeSource), below("volumes/ephemeral/volumeClaimTemplate/spec", claimSpec), containerReferences())

func containerReferences() []reference {
	var all []reference
	for _, list := range containerLists {
		all = append(all,
			reference{at(list + "/env/valueFrom/configMapKeyRef/name"), configMap, byName}, reference{at(list + "/envFrom/configMapRef/name"), configMap, byName},
			reference{at(list + "/env/valueFrom/secretKeyRef/name"), secret, byName}, reference{at(list + "/envFrom/secretRef/name"), secret, byName},
			reference{at(list + "/securityContext/windowsOptions/gmsaCredentialSpecName"), credentialSpec, byName},
		)
	}
	return all
}

// containerLists are the lists of a Pod that hold containers.
var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

// references are those of other places, by the kind that holds them: what kustomize follows, and what it does not. A test
// finds fields of built-in kinds that look like references and are not in this table.
var references = map[schema.GroupKind][]reference{
	kindOf("autoscaling", "HorizontalPodAutoscaler"):           {{at("spec/scaleTargetRef"), deployment, byMapping}, {at("spec/metrics/object/describedObject"), service, byMapping}, {at("spec/metrics/object/target"), service, byMapping}},
	kindOf("autoscaling.k8s.io", "VerticalPodAutoscaler"):      {{at("spec/targetRef"), deployment, byMapping}},
	kindOf("apps", "StatefulSet"):                              slices.Concat([]reference{{at("spec/serviceName"), service, byName}}, below("spec/volumeClaimTemplates/spec", claimSpec)),
	kindOf("networking.k8s.io", "Ingress"):                     ingress,
	kindOf("extensions", "Ingress"):                            ingress,
	kindOf("networking.k8s.io", "IngressClass"):                {{at("spec/parameters"), configMap, byMapping}},
	kindOf("apiregistration.k8s.io", "APIService"):             {{at("spec/service"), service, byMapping}},
	kindOf("apiextensions.k8s.io", "CustomResourceDefinition"): {{at("spec/conversion/webhook/clientConfig/service"), service, byMapping}, {at("spec/conversion/webhookClientConfig/service"), service, byMapping}},

	kindOf("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): {{at("webhooks/clientConfig/service"), service, byMapping}},
	kindOf("admissionregistration.k8s.io", "MutatingWebhookConfiguration"):   {{at("webhooks/clientConfig/service"), service, byMapping}},

	validatingPolicy:  matched("spec/matchConstraints"),
	mutatingPolicy:    matched("spec/matchConstraints"),
	validatingBinding: append(matched("spec/matchResources"), reference{at("spec/paramRef"), validatingPolicy, byPolicy}, reference{at("spec/policyName"), validatingPolicy, byName}),
	mutatingBinding:   append(matched("spec/matchResources"), reference{at("spec/paramRef"), mutatingPolicy, byPolicy}, reference{at("spec/policyName"), mutatingPolicy, byName}),

	kindOf("flowcontrol.apiserver.k8s.io", "FlowSchema"): {
		{at("spec/priorityLevelConfiguration"), kindOf("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"), byMapping},
		{at("spec/rules/subjects/serviceAccount"), serviceAccount, byMapping},
	},

	kindOf("rbac.authorization.k8s.io", "RoleBinding"):        binding,
	kindOf("rbac.authorization.k8s.io", "ClusterRoleBinding"): binding,
	role:        {{path: at("rules/resourceNames"), form: byResource}},
	clusterRole: {{path: at("rules/resourceNames"), form: byResource}},

	serviceAccount: {{at("imagePullSecrets/name"), secret, byName}, {at("secrets/name"), secret, byName}},
	volumeClaim:    below("spec", claimSpec),
	volume:         below("spec", volumeSpec),
	storageClass:   provisionerSecrets(),

	kindOf("storage.k8s.io", "VolumeAttachment"):   append(below("spec/source/inlineVolumeSpec", volumeSpec), reference{at("spec/source/persistentVolumeName"), volume, byName}),
	kindOf("storage.k8s.io", "CSIStorageCapacity"): {{at("storageClassName"), storageClass, byName}},

	resourceClaim:                           below("spec", deviceRequests),
	claimTemplate:                           below("spec/spec", deviceRequests),
	kindOf("scheduling.k8s.io", "Workload"): append(below("spec/podGroupTemplates", podGroup), reference{at("spec/controllerRef"), deployment, byMapping}),
	kindOf("scheduling.k8s.io", "PodGroup"): append(below("spec", podGroup),
		reference{at("spec/podGroupTemplateRef/workload/workloadName"), kindOf("scheduling.k8s.io", "Workload"), byName}),

	kindOf("", "Endpoints"):                     {{at("subsets/addresses/targetRef"), pod, byMapping}, {at("subsets/notReadyAddresses/targetRef"), pod, byMapping}},
	kindOf("discovery.k8s.io", "EndpointSlice"): {{at("endpoints/targetRef"), pod, byMapping}},

	kindOf("cert-manager.io", "Certificate"):   {{at("spec/issuerRef"), kindOf("cert-manager.io", "Issuer"), byMapping}, {at("spec/secretName"), secret, byName}},
	kindOf("cert-manager.io", "Issuer"):        {{at("spec/ca/secretName"), secret, byName}},
	kindOf("cert-manager.io", "ClusterIssuer"): {{at("spec/ca/secretName"), secret, byName}},
}

// matched are the names in the rules of an admission policy or of its binding.
func matched(path string) []reference {
	return []reference{
		{path: at(path + "/resourceRules/resourceNames"), form: byResource}, {path: at(path + "/excludeResourceRules/resourceNames"), form: byResource},
	}
}

// provisionerSecrets are the parameters by which provisioners of volumes find Secrets: those of former in-tree ones, and
// those that all CSI drivers share (https://kubernetes-csi.github.io/docs/secrets-and-credentials-storage-class.html).
func provisionerSecrets() []reference {
	var all []reference
	for _, key := range []string{"secretName", "adminSecretName", "userSecretName", "secretRef"} {
		all = append(all, reference{[]string{"parameters", key}, secret, byName})
	}
	for _, step := range []string{"provisioner", "controller-publish", "node-stage", "node-publish", "controller-expand", "node-expand"} {
		all = append(all, reference{[]string{"parameters", "csi.storage.k8s.io/" + step + "-secret-name"}, secret, byName})
	}
	return all
}

var (
	ingress = []reference{
		{at("spec/rules/http/paths/backend/service/name"), service, byName}, {at("spec/defaultBackend/service/name"), service, byName},
		{at("spec/rules/http/paths/backend/resource"), service, byMapping}, {at("spec/defaultBackend/resource"), service, byMapping},
		{at("spec/backend/resource"), service, byMapping},
		{at("spec/rules/http/paths/backend/serviceName"), service, byName}, {at("spec/backend/serviceName"), service, byName},
		{at("spec/tls/secretName"), secret, byName}, {at("spec/ingressClassName"), kindOf("networking.k8s.io", "IngressClass"), byName},
	}
	binding = []reference{{at("roleRef"), role, byMapping}, {at("subjects"), serviceAccount, byMapping}}
)

// annotations name objects of the bundle as name or namespace/name.
var annotations = map[string]schema.GroupKind{
	"satchel.dev/inject-ca-from":                           secret,
	"cert-manager.io/inject-ca-from":                       kindOf("cert-manager.io", "Certificate"),
	"cert-manager.io/inject-ca-from-secret":                secret,
	"cert-manager.io/issuer":                               kindOf("cert-manager.io", "Issuer"),
	"cert-manager.io/cluster-issuer":                       kindOf("cert-manager.io", "ClusterIssuer"),
	"kubernetes.io/service-account.name":                   serviceAccount,
	"service.beta.openshift.io/serving-cert-secret-name":   secret,
	"ingress.kubernetes.io/auth-secret":                    secret,
	"nginx.ingress.kubernetes.io/auth-secret":              secret,
	"nginx.ingress.kubernetes.io/auth-tls-secret":          secret,
	"nginx.ingress.kubernetes.io/fastcgi-params-configmap": configMap,
}

// Host is a name under which a Service of the bundle is reached, <service>.<namespace> and what may follow, with the name
// that the Service has now; any other name stays.
func Host(names renames, host string) string {
	name, rest, found := strings.Cut(host, ".")
	if !found {
		return host
	}
	namespace, _, _ := strings.Cut(rest, ".")
	return names.newName(service, namespace, name) + "." + rest
}
