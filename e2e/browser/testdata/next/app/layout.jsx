export const metadata = { title: 'Hedgerow' }

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body style={{ font: '1.1em/1.5 serif', maxWidth: '40em', margin: '2em auto' }}>{children}</body>
    </html>
  )
}
