import Image from 'next/image'
import Link from 'next/link'

// Thirty links, far enough apart that scrolling brings them into view in turn.
export default function Listing() {
  return (
    <main>
      <h1>Thirty articles</h1>
      <Image src="/hills.png" width={64} height={64} alt="hills" />
      <ol>
        {Array.from({ length: 30 }, (_, i) => (
          <li key={i} style={{ height: '12em' }}>
            <Link id={`soft-${i}`} href={`/article/${i}`}>Article {i}</Link>{' '}
            <a id={`hard-${i}`} href={`/article/${i}`}>as a page</a>{' '}
            <Link id={`cold-${i}`} prefetch={false} href={`/plain?n=${i}`}>not prefetched {i}</Link>
          </li>
        ))}
      </ol>
    </main>
  )
}
