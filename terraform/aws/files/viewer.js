// Overwrites what a viewer may have sent: these two fields are CloudFront's word.
function handler(event) {
  var request = event.request;
  request.headers['${client_header}'] = { value: event.viewer.ip };
  request.headers['x-forwarded-host'] = { value: request.headers.host.value };
  return request;
}
