{{/*
Names, labels and the namespace are literal in all templates: policies name accounts, and the daemons' defaults name the
namespace. So what is rendered reads as plain YAML, and two releases can't be in one cluster.
*/}}

{{/* One of our images: the root, and its name as image.node says it. */}}
{{- define "partage.image" -}}
{{- $root := index . 0 }}
{{- with $root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}
{{- include "partage.tagged" (dict "name" (index . 1) "tag" $root.Chart.AppVersion) }}
{{- end }}

{{/* A name with a tag, unless it has a tag or a digest. A port of a registry is before the last slash. */}}
{{- define "partage.tagged" -}}
{{- .name }}
{{- if not (or (contains "@" .name) (contains ":" (base .name))) }}:{{ .tag }}{{ end }}
{{- end }}

{{/* Settings of a daemon as variables, lists with commas; then the variables of its plugins. */}}
{{- define "partage.variables" -}}
{{- range $name, $value := .settings }}
- name: {{ $.prefix }}_{{ upper $name }}
  value: {{ include "partage.value" $value | quote }}
{{- end }}
{{- range $name, $value := .environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Variables of all that reads requests: by which dialects, and which words are whose. */}}
{{- define "partage.ofScheduler" -}}
{{- if ne .Values.nvidiaGpu "kubelet" }}
- name: PARTAGE_NVIDIA_GPU
  value: {{ .Values.nvidiaGpu }}
{{- end }}
{{- with .Values.scheduler.blockedPlugins }}
- name: PARTAGE_PLUGINS_BLOCK
  value: {{ join "," . | quote }}
{{- end }}
{{- end }}

{{/* What is said to the scheduler by values; the Job that checks it before is told the same. */}}
{{- define "partage.schedulerVariables" -}}
{{- include "partage.ofScheduler" . }}
{{- if eq (include "partage.allocatesClaims" .) "true" }}
- name: PARTAGE_SCHEDULER_CLAIMS
  value: "true"
{{- end }}
{{- if .Values.reservations.enabled }}
- name: PARTAGE_SCHEDULER_RESERVE_IMAGE
  value: {{ .Values.reservations.image }}
{{- end }}
{{- if and (eq .Values.profile "gpu-operator") (not (hasKey .Values.scheduler.settings "drain_paused")) }}
# The operator evicts no pod with a share before it changes the driver or the instances of MIG.
- name: PARTAGE_SCHEDULER_DRAIN_PAUSED
  value: "true"
{{- end }}
{{- include "partage.variables" (dict "prefix" "PARTAGE_SCHEDULER" "settings" .Values.scheduler.settings "environment" .Values.scheduler.environment) }}
{{- end }}

{{/* The same of the controller of SharePods. */}}
{{- define "partage.sharepodsVariables" -}}
{{- include "partage.ofScheduler" . }}
{{- include "partage.variables" (dict "prefix" "PARTAGE_SHAREPODS" "settings" .Values.sharepods.settings "environment" .Values.scheduler.environment) }}
{{- end }}

{{- define "partage.value" -}}
{{- if kindIs "slice" . }}{{ join "," . }}{{ else if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{/* Whether nodes are changed; empty: they are not. */}}
{{- define "partage.installs" -}}
{{- if and .Values.installer.enabled (ne .Values.mode "dra") }}true{{ end }}
{{- end }}

{{/* Whether claims have shares; empty: they have none. */}}
{{- define "partage.dra" -}}
{{- if or .Values.dra.enabled (eq .Values.mode "dra") }}true{{ end }}
{{- end }}

{{/* Which cards claims are for; empty: none. */}}
{{- define "partage.draCards" -}}
{{- .Values.dra.cards | default (ternary "all" "" (eq .Values.mode "dra")) }}
{{- end }}

{{/* Whether nodes have no broker of their own. */}}
{{- define "partage.draBringsBroker" -}}
{{- if eq .Values.dra.broker "auto" }}{{ not (include "partage.installs" .) }}{{ else }}{{ eq .Values.dra.broker "pod" }}{{ end }}
{{- end }}

{{/* Whether claims are for the scheduler to allocate. */}}
{{- define "partage.allocatesClaims" -}}
{{ and (include "partage.dra" .) (eq .Values.dra.allocator "partage-scheduler") }}
{{- end }}

{{- define "partage.driverRoot" -}}
{{- .Values.driverRoot | default "/" }}
{{- end }}

{{/* All namespaces whose pods may name devices, as JSON: also that of the operator. */}}
{{- define "partage.trusted" -}}
{{- $operators := list }}
{{- if eq .Values.profile "gpu-operator" }}{{ $operators = list .Values.operatorNamespace }}{{ end }}
{{- concat .Values.trustedNamespaces $operators | uniq | toJson }}
{{- end }}

{{/* Whether `name` is a resource that the scheduler's dialects read, in CEL. */}}
{{- define "partage.asks" -}}
name.startsWith('partage.dev/') || name.startsWith('volcano.sh/')
{{- $words := dict "kubelet" list "whole" (list "gpu") "hami" (list "gpu" "gpumem" "gpumem-percentage" "gpucores" "priority") }}
{{- range get $words .Values.nvidiaGpu }} || name == 'nvidia.com/{{ . }}'{{ end }}
{{- end }}

{{/* A list of namespaces in CEL. */}}
{{- define "partage.namespaces" -}}
[{{ range $place, $name := . }}{{ if $place }}, {{ end }}'{{ $name }}'{{ end }}]
{{- end }}
