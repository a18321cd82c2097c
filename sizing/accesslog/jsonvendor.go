package accesslog

import "strings"

// vendor maps the keys that mark a format by themselves.
func (w *walker) vendor(key string) (slot, group) {
	mark := func(g group, s slot) (slot, group) { w.seen |= g; return s, 0 }
	switch key {
	// API Gateway: whatever an operator wrote, built of $context variables.
	case "requestTimeEpoch":
		return mark(gGateway, sTime)
	case "requestTime":
		return mark(gGateway, sTimeOther)
	case "httpMethod":
		return mark(gGateway, sMethod)
	case "resourcePath":
		return mark(gGateway, sURI)
	case "routeKey":
		return mark(gGateway, sRoute)
	case "responseLatency":
		return sMillis, 0
	// Traefik
	case "ClientHost":
		return mark(gTraefik, sClientIP)
	case "ClientAddr":
		return sRemote, 0
	case "StartUTC":
		return sTime, 0
	case "StartLocal":
		return sTimeOther, 0
	case "RequestMethod":
		return mark(gTraefik, sMethod)
	case "RequestPath":
		return mark(gTraefik, sURI)
	case "RequestHost":
		return sHost, 0
	case "RequestAddr":
		return sHostOther, 0
	case "DownstreamStatus":
		return mark(gTraefik, sStatus)
	case "DownstreamContentSize":
		return sBytes, 0
	case "Duration":
		return sNanos, 0
	case "downstream_Content-Type", "origin_Content-Type":
		return sType, 0
	// Envoy
	case ":authority", "authority":
		return mark(gEnvoy, sHost)
	case "downstream_remote_address":
		return mark(gEnvoy, sClientIP)
	case "start_time":
		return sTime, 0
	case "x-envoy-origin-path":
		return mark(gEnvoy, sURI)
	case "response_code":
		return mark(gEnvoy, sStatus)
	case "user-agent":
		return sAgent, 0
	case "x-request-id":
		return sRequestID, 0
	// Cloudflare Logpush
	case "ClientIP":
		return sClientIP, 0
	case "RayID":
		return mark(gCloudflare, sRequestID)
	case "EdgeStartTimestamp":
		return mark(gCloudflare, sTime)
	case "ClientRequestMethod":
		return sMethod, 0
	case "ClientRequestURI":
		return sURI, 0
	case "ClientRequestPath":
		return sPath, 0
	case "ClientRequestHost":
		return sHost, 0
	case "ClientRequestUserAgent":
		return sAgent, 0
	case "ClientRequestReferer":
		return sReferer, 0
	case "ClientASN":
		return sASN, 0
	case "CacheCacheStatus":
		return sCache, 0
	case "EdgeResponseStatus":
		return sStatus, 0
	case "EdgeResponseBytes":
		return sBytes, 0
	case "EdgeResponseContentType":
		return sType, 0
	case "WorkerSubrequest":
		return sSub, 0
	}
	if h, ok := strings.CutPrefix(key, "request_"); ok { // Traefik: request_User-Agent
		return w.anyCaseHeader(h), 0
	}
	if w.header != "" && strings.EqualFold(key, w.header) {
		return sWanted, 0
	}
	return sNone, 0
}
